/**
 * Views of the traffic under names of the reader's own: the query of an address. They are kept in the browser, apart for
 * each person, and hold what the address holds: filters, columns and the time range.
 */
import { signal } from '@preact/signals'
import { caller } from '../../session.ts'

export interface SavedView {
  name: string
  /** `verdict=deny&range=7d`. */
  query: string
}

/** More would not be looked through. */
export const viewsAtMost = 50

const key = (): string => `gatehouse-views-${caller.value?.user?.id ?? ''}`

const isView = (value: unknown): value is SavedView =>
  typeof value === 'object' &&
  value !== null &&
  'name' in value &&
  typeof value.name === 'string' &&
  'query' in value &&
  typeof value.query === 'string'

function read(): SavedView[] {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(key()) ?? '[]')
    return Array.isArray(kept) ? kept.filter(isView) : []
  } catch {
    // Something else has written there: there are no views, and the next one that is saved replaces it.
    return []
  }
}

/** Raised with each change, so that the parts that show the views are drawn again. */
const changes = signal(0)

export function savedViews(): SavedView[] {
  changes.value
  return read()
}

const keep = (views: readonly SavedView[]): void => {
  localStorage.setItem(key(), JSON.stringify(views))
  changes.value += 1
}

/** A view of the same name is replaced. */
export function saveView(name: string, query: URLSearchParams): void {
  const kept = new URLSearchParams(query)
  kept.delete('cursor')
  const others = read().filter((view) => view.name !== name)
  keep([...others, { name, query: kept.toString() }].slice(-viewsAtMost))
}

export const forgetView = (name: string): void => keep(read().filter((view) => view.name !== name))
