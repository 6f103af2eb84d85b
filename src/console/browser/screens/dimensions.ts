/** Dimensions of attribution, which several screens sum up by and filter by. */

import { api } from '../api/routes.ts'
import { humanize } from '../formats.ts'
import { type Loaded, useLoaded } from '../parts/loaded.tsx'
import { hasPermission } from '../session.ts'
import { timeRange } from '../time-range.ts'
import { everyRecord } from './catalog/record-options.ts'

export type DimensionKey = `dimension:${string}`

export const keyOf = (name: string): DimensionKey => `dimension:${name}`

/** The name in `dimension:customer`; null for anything else. */
export const dimensionIn = (key: string): string | null => (key.startsWith('dimension:') ? key.slice(10) : null)

/** `Customer`. */
export const dimensionTitle = (name: string): string => humanize(name)

/** What the filter of events takes: `customer=acme`. */
export const valueFilter = (name: string, value: string): string => `${name}=${value}`

/** The names of the declared dimensions; none for a person who may not read them. */
export const useDimensions = (): Loaded<string[]> => useLoaded('dimensions', declared)

async function declared(signal?: AbortSignal): Promise<string[]> {
  if (!hasPermission('catalog:read')) return []
  return (await everyRecord('/v1/attribution-dimensions', signal)).map(({ name }) => String(name))
}

const suggestedAtMost = 50
const keptForMs = 30_000
const read = new Map<string, { at: number; values: Promise<string[]> }>()

/** The values of a dimension in the time range that most requests had, read at most twice a minute. */
function valuesOf(name: string): Promise<string[]> {
  const { since, until } = timeRange()
  const key = JSON.stringify([name, since, until])
  const known = read.get(key)
  if (known !== undefined && Date.now() - known.at < keptForMs) return known.values
  const query = { since, until, by: keyOf(name) }
  const values = api('GET /v1/events/series', { query }).then(({ totals }) =>
    totals.flatMap(({ key: value, rest }) => (value === null || rest ? [] : [value])),
  )
  read.set(key, { at: Date.now(), values })
  return values
}

/** What can be typed for the filter of a value: `customer=acme`, of the values that have what is typed. */
export async function suggestedValues(typed: string): Promise<string[]> {
  const names = await declared()
  const at = typed.indexOf('=')
  const wanted = at < 0 ? names : names.filter((name) => name === typed.slice(0, at))
  const text = typed.slice(at + 1).toLowerCase()
  const found = await Promise.all(
    wanted.map(async (name) => (await valuesOf(name)).map((value) => valueFilter(name, value))),
  )
  return found
    .flat()
    .filter((one) => one.toLowerCase().includes(text))
    .slice(0, suggestedAtMost)
}
