/**
 * What the ids of files and batches hold beside their place at the provider (stored/sealed-id.ts), so that the gateway
 * keeps nothing: of a file that was checked, what its lines may cost and by which rules they were checked; of a batch
 * and of its output, by which exchange it was made.
 */
import { type Family, isFamily } from '../../languages/families.ts'
import type { Gateway } from '../context.ts'
import { type Exchange, required } from '../exchange.ts'
import { isProviderId, type StoredPlace, sealId } from '../stored/sealed-id.ts'
import type { StoredKind } from '../stored/stored-state.ts'

/** The lines of a file as they were checked. */
export interface CheckedLines {
  readonly family: Family
  readonly lines: number
  /** The most that all lines can cost, in nano-dollars; null if that is not known. */
  readonly bound: number | null
  /** The digest of the policies and the price by which they were checked. */
  readonly rules: string
}

/** A batch by the exchange that made it. */
export interface BatchOrigin extends CheckedLines {
  readonly hold: string
  /** The provider's id. */
  readonly batch: string
}

const written = ({ family, lines, bound, rules }: CheckedLines): readonly string[] => [
  family,
  String(lines),
  bound === null ? '' : String(bound),
  rules,
]

export const moreOfInput = (checked: CheckedLines): readonly string[] => written(checked)
export const moreOfBatch = (origin: BatchOrigin): readonly string[] => [...written(origin), origin.hold, origin.batch]

/** The lines that a file or batch has; null of an id that holds none. */
export function linesOf({ more }: StoredPlace): CheckedLines | null {
  const [family = '', lines = '', bound = '', rules = ''] = more
  if (!isFamily(family)) return null
  return { family, lines: Number(lines), bound: bound === '' ? null : Number(bound), rules }
}

/** The batch that made an output file, or that a batch's own id names; null of an input file. */
export function originOf(place: StoredPlace): BatchOrigin | null {
  const [, , , , hold, batch] = place.more
  const checked = linesOf(place)
  return checked === null || hold === undefined || batch === undefined ? null : { ...checked, hold, batch }
}

/** The owner of the token, as lists know it. */
export function ownerOf({ token }: Exchange): string {
  const { ownerKind, ownerId } = required(token)
  return `${ownerKind}/${ownerId}`
}

/** The sealed id of an object of this exchange's provider, or the provider's own if it could be no part of a path. */
export function sealedName(
  exchange: Exchange,
  gateway: Gateway,
  kind: StoredKind,
  id: string,
  more: readonly string[],
): string {
  if (!isProviderId(id)) return id
  const stored = required(exchange.stored)
  const known = stored.names.get(id)
  if (known !== undefined) return known
  const { provider, id: model } = required(exchange.model)
  const name = sealId(kind, { providerId: provider.id, model, id, more }, required(exchange.token), gateway)
  stored.names.set(id, name)
  return name
}
