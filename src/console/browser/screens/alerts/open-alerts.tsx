/** What alerts have found and is not over, for those who look at the overview. */
import { href } from '../../address.ts'
import { request } from '../../api/request.ts'
import type { Firing } from '../../api/routes.ts'
import { ErrorNote, useLoaded } from '../../parts/loaded.tsx'
import { Time } from '../../parts/small.tsx'
import { showInvisible } from '../../parts/user-text.tsx'

const mostShown = 6
const order = ['critical', 'warning', 'info']

export function OpenAlerts() {
  const found = useLoaded(
    'open alerts',
    (signal) =>
      request<{ alert_firings: Firing[]; next_cursor: string | null }>('GET', '/v1/alert-firings', {
        query: { state: 'open', limit: 100 },
        signal,
      }),
    { everyMs: 15_000 },
  )
  if (found.refusal !== null) return <ErrorNote refusal={found.refusal} retry={found.reload} />
  const firings = (found.value?.alert_firings ?? []).toSorted(
    (left, right) => order.indexOf(left.severity) - order.indexOf(right.severity),
  )
  if (firings.length === 0) return null
  return (
    <section class="note warn stack close" aria-label="Open alerts">
      <ul>
        {firings.slice(0, mostShown).map(({ id, alert, about, fired_at }) => (
          <li key={id}>
            <a href={href('/alerts', { state: 'open' })}>{alert ?? 'A deleted alert'}</a>: {showInvisible(about)}{' '}
            <span class="quiet">
              (since <Time at={fired_at} />)
            </span>
          </li>
        ))}
      </ul>
      {firings.length > mostShown && (
        <p class="small">
          And <a href={href('/alerts', { state: 'open' })}>{firings.length - mostShown} more</a>.
        </p>
      )}
    </section>
  )
}
