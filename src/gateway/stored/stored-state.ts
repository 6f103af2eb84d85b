/** What an exchange knows of objects that a provider stores. */

import type { JsonObject } from '../../languages/reading/json-value.ts'
import type { MadeObject } from '../../usage/batches/batch-protocol.ts'
import type { BatchHold } from '../batches/batch-hold.ts'

export type StoredKind = 'resp' | 'conv' | 'file' | 'batch'

/** A call for a stored object, instead of a request to a model. */
export interface StoredCall {
  readonly method: 'GET' | 'POST' | 'DELETE'
  /** After the provider's base, with its query. */
  readonly path: string
  /** What the answer is; null for items and lists of them. */
  readonly gives: StoredKind | null
  /** The provider's id that the answer must have; null where the call creates an object or lists others. */
  readonly answersWith: string | null
  /** What is sent in place of the caller's body; absent: that body. */
  readonly body?: Uint8Array
  /** It must not be sent again, because the provider would make a second object. */
  readonly isOnce?: true
  /** The members of the answer to replace, as JSON texts; absent for responses and conversations. */
  editsOf?(answer: Readonly<JsonObject>): Map<string, string>
  /** Passes a successful answer on in place of the gateway's usual ways; absent: those. */
  relay?(upstream: Response): Promise<void>
}

export interface StoredState {
  call: StoredCall | null
  /** The only provider that has what the request names; null if it names nothing. */
  providerId: string | null
  /** Provider's id → the id that the caller knows. */
  readonly names: Map<string, string>
  /** What the batch that it makes holds; null if it makes none. */
  batch: BatchHold | null
  /** The file or batch that it has made; null if it has made none. */
  made: MadeObject | null
  /** The request was admitted to make a response in the background. */
  isBackground: boolean
  /** The gateway waits for the end of that response (`background.ts`). */
  isFollowed: boolean
}

/** A response that one call made in the background. */
export interface BackgroundResponse {
  /** The provider's id. */
  readonly id: string
  /** Its status is final. */
  hasEnded: boolean
}

export const newStoredState = (): StoredState => ({
  call: null,
  providerId: null,
  names: new Map(),
  batch: null,
  made: null,
  isBackground: false,
  isFollowed: false,
})

interface Calling {
  readonly stored: StoredState | null
  readonly call: { readonly background: BackgroundResponse | null }
}

/** Whether a response runs in the background at the provider, as far as is known. */
export const isUnseen = ({ call }: Pick<Calling, 'call'>): boolean => call.background?.hasEnded === false

/** Whether the call may have made a response in the background whose id is not known yet. */
export const isUnnamed = ({ stored, call }: Calling): boolean =>
  stored?.isBackground === true && call.background === null
