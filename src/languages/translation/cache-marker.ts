/** Markers that all up to here may be kept in the provider's cache, in the form that callers of every language send. */

import type { FieldPath, NeutralPart, NeutralTurn } from '../neutral.ts'
import { isGiven, isObject } from '../reading/json-value.ts'
import { unsupported } from './translation-errors.ts'

/** What `cache_control` says, to be spread into what it marks; nothing where there is none. */
export function cacheOf(value: unknown, at: FieldPath): Pick<NeutralPart, 'cache'> {
  if (!isGiven(value)) return {}
  const ttl = isObject(value) && value.type === 'ephemeral' ? (value.ttl ?? null) : undefined
  if (ttl === null || ttl === '5m' || ttl === '1h') return { cache: { value: { ttl }, at } }
  throw unsupported(at, 'cache_control must be {"type": "ephemeral"}, with a ttl of "5m" or "1h" where it has one')
}

/** A marker for the whole body stands for all of the conversation: it marks the last part, where that has none itself. */
export function withCacheAtEnd(turns: readonly NeutralTurn[], marker: unknown): readonly NeutralTurn[] {
  const marked = cacheOf(marker, 'cache_control')
  const last = turns.at(-1)
  const end = last?.parts.at(-1)
  if (marked.cache === undefined || last === undefined || end === undefined || end.cache !== undefined) return turns
  return turns.with(-1, { ...last, parts: last.parts.with(-1, { ...end, ...marked }) })
}
