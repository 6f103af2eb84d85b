/** What an exchange knows of objects that a provider stores. */

export type StoredKind = 'resp' | 'conv'

/** A call for a stored object, instead of a request to a model. */
export interface StoredCall {
  readonly method: 'GET' | 'POST' | 'DELETE'
  /** After the provider's base, with its query. */
  readonly path: string
  /** What the answer is; null for items and lists of them. */
  readonly gives: StoredKind | null
  /** The provider's id that the answer must have; null where the call creates an object or lists others. */
  readonly answersWith: string | null
}

export interface StoredState {
  call: StoredCall | null
  /** The only provider that has what the request names; null if it names nothing. */
  providerId: string | null
  /** Provider's id → the id that the caller knows. */
  readonly names: Map<string, string>
  /** The response runs in the background. */
  isBackground: boolean
  /** The provider's id of the response that the request made; null before it is known. */
  created: string | null
  /** Its status is final. */
  hasEnded: boolean
  /** The gateway waits for the end of that response in the background (`background.ts`). */
  isFollowed: boolean
}

export const newStoredState = (): StoredState => ({
  call: null,
  providerId: null,
  names: new Map(),
  isBackground: false,
  created: null,
  hasEnded: false,
  isFollowed: false,
})

/** Whether a response runs in the background at the provider, as far as is known. */
export const isUnseen = ({ stored }: { stored: StoredState | null }): boolean =>
  stored?.isBackground === true && stored.created !== null && !stored.hasEnded
