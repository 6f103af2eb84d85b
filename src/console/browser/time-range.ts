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

/** Whole days of the reader's own calendar, by how many days ago they begin and end; null is now. */
export const days = [
  ['today', 'Today', 0, null],
  ['yesterday', 'Yesterday', 1, 0],
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
  const day = days.find(([known]) => known === wanted)
  if (day !== undefined) return dayRange(day)
  const [name, , seconds] = ranges.find(([known]) => known === wanted) ?? ['24h', '', 86_400]
  return { since: name, until: null, seconds, name }
}

/** The midnight with which a day began, so many days ago; a day of a changed clock has 23 or 25 hours. */
function midnight(daysAgo: number): Date {
  const at = new Date()
  at.setHours(0, 0, 0, 0)
  at.setDate(at.getDate() - daysAgo)
  return at
}

function dayRange([name, , begins, ends]: (typeof days)[number]): TimeRange {
  const [from, to] = [midnight(begins), ends === null ? null : midnight(ends)]
  const seconds = Math.max(60, ((to ?? new Date()).getTime() - from.getTime()) / 1000)
  return { since: from.toISOString(), until: to?.toISOString() ?? null, seconds, name }
}

export const chooseRange = (name: string): void =>
  setQuery({ range: name === usual ? null : name, since: null, until: null })

export const chooseInstants = (since: string, until: string | null): void => setQuery({ range: null, since, until })
