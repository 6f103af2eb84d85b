/** Windows of budgets, in UTC: a day, a week from Monday, a month, or all time. */
import type { BudgetWindow } from './limits.ts'

const dayMs = 86_400_000

/** When the window that contains an instant began and ends, in milliseconds since the epoch; null for `total`. */
export function windowAt(window: BudgetWindow, now: number): { start: number; end: number } | null {
  const date = new Date(now)
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()]
  const day = Date.UTC(year, month, date.getUTCDate())
  if (window === 'day') return { start: day, end: day + dayMs }
  if (window === 'month') return { start: Date.UTC(year, month), end: Date.UTC(year, month + 1) }
  if (window === 'total') return null
  const monday = day - ((date.getUTCDay() + 6) % 7) * dayMs
  return { start: monday, end: monday + 7 * dayMs }
}

/** The booked name of a budget's account at an instant. `id`: of the budget, with the digest of a value after a slash. */
export function bookedBudget(id: string, window: BudgetWindow, now: number): { booked: string; until: number | null } {
  const running = windowAt(window, now)
  if (running === null) return { booked: `budget/${id}`, until: null }
  return { booked: `budget/${id}@${new Date(running.start).toISOString().slice(0, 10)}`, until: running.end }
}

/** The window in a booked name: `@2026-11-01`; empty without a window. */
export const windowOf = (booked: string): string => (booked.includes('@') ? booked.slice(booked.indexOf('@')) : '')

/** No window is longer than 31 days, so 40 days after its start it has ended and all its usage has been reported. */
export const longAgoMs = 40 * dayMs

/** Whether an account belongs to a window that ended long ago. */
export function endedLongAgo(booked: string, now: number): boolean {
  const at = booked.indexOf('@')
  return at >= 0 && Date.parse(booked.slice(at + 1)) < now - longAgoMs
}
