/** Providers whose last connection test failed. */
import type { Event } from '../../api/routes.ts'

export interface FailedTest {
  /** Of the provider. */
  id: string
  name: string
  at: string
}

type Tested = Pick<Event, 'timestamp' | 'details'>

/** Of tests, the newest first: those that are the last of their provider, and failed. */
export function failedTests(events: readonly Tested[]): Omit<FailedTest, 'name'>[] {
  const seen = new Set<unknown>()
  return events.flatMap(({ timestamp, details }) => {
    const id = details?.provider_id
    if (typeof id !== 'string' || seen.has(id)) return []
    seen.add(id)
    return details?.ok === false ? [{ id, at: timestamp }] : []
  })
}
