/**
 * The time range that governs every chart and table, from the address: the last so long, or from one instant to
 * another.
 */
import { queryValue, setQuery } from './address.ts'

export const ranges = [
  ['15m', '15 minutes', 900],
  ['1h', '1 hour', 3600],
  ['6h', '6 hours', 21_600],
  ['24h', '24 hours', 86_400],
  ['7d', '7 days', 604_800],
  ['30d', '30 days', 2_592_000],
] as const

const usual = '24h'

export interface TimeRange {
  /** As `since` of the API: `24h`, or an instant. */
  since: string
  /** An instant; null is now. */
  until: string | null
  /** How long it is, in seconds. */
  seconds: number
  name: string
}

export function timeRange(): TimeRange {
  const [since, until] = [queryValue('since'), queryValue('until')]
  if (since !== null && !Number.isNaN(Date.parse(since))) {
    const end = until === null || Number.isNaN(Date.parse(until)) ? null : until
    const seconds = Math.max(60, ((end === null ? Date.now() : Date.parse(end)) - Date.parse(since)) / 1000)
    return { since, until: end, seconds, name: 'custom' }
  }
  const wanted = queryValue('range') ?? usual
  const [name, , seconds] = ranges.find(([known]) => known === wanted) ?? ['24h', '', 86_400]
  return { since: name, until: null, seconds, name }
}

export const chooseRange = (name: string): void =>
  setQuery({ range: name === usual ? null : name, since: null, until: null })

export const chooseInstants = (since: string, until: string | null): void => setQuery({ range: null, since, until })
