/**
 * Cache markers: the provider may keep everything up to here in its cache. Callers of every language send them in the
 * same form.
 */

import type { FieldPath, NeutralPart, NeutralTurn } from '../neutral.ts'
import { isGiven, isObject, type JsonObject } from '../reading/json-value.ts'
import { unsupported } from './translation-errors.ts'

/** The members for `cache_control`, to spread into the marked part; empty without a marker. */
export function cacheOf(value: unknown, at: FieldPath): Pick<NeutralPart, 'cache'> {
  if (!isGiven(value)) return {}
  const ttl = isObject(value) && value.type === 'ephemeral' ? (value.ttl ?? null) : undefined
  if (ttl === null || ttl === '5m' || ttl === '1h') return { cache: { value: { ttl }, at } }
  throw unsupported(at, 'cache_control must be {"type": "ephemeral"}, with a ttl of "5m" or "1h" where it has one')
}

/** A marker beside the content of a message marks the last of its parts, unless that has its own. */
export function withCacheOf<Part extends NeutralPart>(
  parts: Part[],
  { cache_control: marker }: JsonObject,
  at: FieldPath,
): Part[] {
  const marked = cacheOf(marker, `${at}.cache_control`)
  const end = parts.at(-1)
  return marked.cache === undefined || end === undefined || end.cache !== undefined
    ? parts
    : parts.with(-1, { ...end, ...marked })
}

/** A marker for the whole body covers all of the conversation: it marks the last part, unless that has its own. */
export function withCacheAtEnd(turns: readonly NeutralTurn[], marker: unknown): readonly NeutralTurn[] {
  const marked = cacheOf(marker, 'cache_control')
  const last = turns.at(-1)
  const end = last?.parts.at(-1)
  if (marked.cache === undefined || last === undefined || end === undefined || end.cache !== undefined) return turns
  return turns.with(-1, { ...last, parts: last.parts.with(-1, { ...end, ...marked }) })
}
