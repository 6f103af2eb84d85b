/** Reads which providers failed their last connection test, and have answered no request since. */
import { Refusal, request } from '../../api/request.ts'
import { api } from '../../api/routes.ts'
import { type FailedTest, failedTests } from './failed-tests.ts'

export async function readFailedTests(signal: AbortSignal): Promise<FailedTest[]> {
  const query = { since: '90d', event_type: 'catalog.tested', limit: 100 }
  const { events } = await api('GET /v1/events', { query, signal })
  const found = await Promise.all(failedTests(events).map((test) => withName(test, signal)))
  return found.filter((test) => test !== null)
}

/** Null where the provider was deleted, or has answered since. */
async function withName({ id, at }: Omit<FailedTest, 'name'>, signal: AbortSignal): Promise<FailedTest | null> {
  try {
    const path = `/v1/catalog/providers/${encodeURIComponent(id)}`
    const { name } = await request<{ name: string }>('GET', path, { signal })
    const query = { since: at, event_type: 'gateway.request.outcome', provider: name, verdict: 'allow', limit: 1 }
    const { events } = await api('GET /v1/events', { query, signal })
    return events.length > 0 ? null : { id, name, at }
  } catch (error) {
    if (error instanceof Refusal && error.status === 404) return null
    throw error
  }
}
