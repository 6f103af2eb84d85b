/**
 * The ids that callers get of what a provider stores: `resp_…` and `conv_…`, in which the route is sealed, so that the
 * gateway stores nothing and every gateway of the installation finds the provider again.
 *
 * An id holds the provider's record, the model and the provider's own id, under authenticated encryption with the key
 * that all gateways of the installation share. The context is the kind of the object, the organization and the token's
 * owner: to another owner the id is one that nobody has sealed. The same object always has the same id. It is
 * hexadecimal, because policies take an id with words in it for a text (`languages/reading/texts/known-labels.ts`).
 */
import { sealSame, unsealSame } from '../../lib/seal.ts'
import type { GovernedToken } from '../../tokens/governed-token.ts'
import type { Gateway } from '../context.ts'
import type { StoredKind } from './stored-state.ts'

/** Where a stored object is. */
export interface StoredPlace {
  readonly providerId: string
  /** The model that made it, by the name that policies and filters know; empty for a conversation. */
  readonly model: string
  /** The provider's own id. */
  readonly id: string
  /** What else is known of the object; none of a response and a conversation. */
  readonly more: readonly string[]
}

/** Longer ids are none of the gateway's. */
const longestId = 2048
/** The provider's ids: they become one segment of a path, and never `..`. */
const providerId = /^[A-Za-z0-9_-][A-Za-z0-9_.:=~-]{0,511}$/

export const isProviderId = (id: string): boolean => providerId.test(id)

type Owner = Pick<GovernedToken, 'ownerKind' | 'ownerId'>

const contextOf = (kind: StoredKind, { ownerKind, ownerId }: Owner, { worker }: Pick<Gateway, 'worker'>): string =>
  [kind, worker.status.organizationId, ownerKind, ownerId].join('\n')

export function sealId(kind: StoredKind, place: StoredPlace, owner: Owner, gateway: Pick<Gateway, 'worker'>): string {
  const plain = JSON.stringify(writtenPlace(place))
  return `${kind}_${sealSame(gateway.worker.status.storedIdKey, plain, contextOf(kind, owner, gateway))}`
}

/** What an id holds, as a list of texts. */
export const writtenPlace = ({ providerId, model, id, more }: StoredPlace): readonly string[] => [
  providerId,
  model,
  id,
  ...more,
]

export function placeOf([providerId = '', model = '', id = '', ...more]: readonly string[]): StoredPlace {
  return { providerId, model, id, more }
}

/** The place of an id; null for one that was not sealed for this owner, or was changed. */
export function openId(
  kind: StoredKind,
  sealed: string,
  owner: Owner,
  gateway: Pick<Gateway, 'worker'>,
): StoredPlace | null {
  if (sealed.length > longestId || !sealed.startsWith(`${kind}_`)) return null
  const text = sealed.slice(kind.length + 1)
  const plain = unsealSame(gateway.worker.status.storedIdKey, text, contextOf(kind, owner, gateway))
  if (plain === null) return null
  return placeOf(JSON.parse(plain))
}
