/** What policies did in the time range: counts, and over the time; from the events, which are read up to a bound. */
import { href } from '../../address.ts'
import { api, type PolicyActivity } from '../../api/routes.ts'
import { clockTime, fullTime, humanize, milliseconds, number } from '../../formats.ts'
import { type Loaded, Show, useLoaded } from '../../parts/loaded.tsx'
import { Facts } from '../../parts/small.tsx'
import { hasPermission } from '../../session.ts'
import { timeRange } from '../../time-range.ts'

interface Activity {
  until: string
  examined: number
  complete: boolean
  exact_since: string
  byId: ReadonlyMap<string, PolicyActivity>
}

/** Of all policies, or of one. */
export function usePolicyActivity(policyId?: string): Loaded<Activity> {
  const { since, until } = timeRange()
  return useLoaded(`activity ${policyId} ${since} ${until}`, async (signal) => {
    const query = { since, until, ...(policyId === undefined ? {} : { policy_id: policyId }) }
    const { policies, ...read } = await api('GET /v1/policies/activity', { query, signal })
    return { ...read, byId: new Map(policies.map((policy) => [policy.policy_id, policy])) }
  })
}

export const foundIn = ({ asked, verdicts }: PolicyActivity): number => asked - (verdicts.allow ?? 0)

/** What it found over the time, as bars; in words beside it. */
export function Bars({ activity, wide = false }: { activity: PolicyActivity; wide?: boolean }) {
  const most = Math.max(1, ...activity.points.map(({ found }) => found))
  const [width, height] = [4, wide ? 64 : 20]
  const bars = (of: 'found' | 'stopped', kind: string) =>
    activity.points.map((point, index) => {
      const tall = (point[of] / most) * height
      return tall === 0 ? null : (
        <rect key={`${of} ${index}`} class={kind} x={index * width} y={height - tall} width={width - 1} height={tall} />
      )
    })
  return (
    <svg
      class={wide ? 'bars wide' : 'bars'}
      viewBox={`0 0 ${activity.points.length * width} ${height}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={`${number(foundIn(activity))} findings, ${number(activity.stopped)} requests stopped`}
    >
      <path class="ground" d={`M0 ${height - 0.5}H${activity.points.length * width}`} />
      {bars('found', 'found')}
      {bars('stopped', 'stopped')}
    </svg>
  )
}

/** When the counts were made, and from when on they are exact. */
export function countedWords({ until, complete, examined, exact_since: since }: Activity): string {
  const older = `They are exact since ${fullTime(since)}: older requests than the newest ${number(examined)} are not counted.`
  return `Counts as of ${clockTime(until)}.${complete ? '' : ` ${older}`}`
}

/** One policy's, with a way to the requests behind it. */
export function ActivityCard({ policyId, name }: { policyId: string; name: string }) {
  const loaded = usePolicyActivity(policyId)
  return (
    <section class="card stack" aria-label="Activity">
      <h2>Activity</h2>
      <Show of={loaded} rows={3}>
        {(found) => {
          const activity = found.byId.get(policyId)
          if (activity === undefined) return <p class="quiet">It applied to no request in this time range.</p>
          return (
            <>
              <Bars activity={activity} wide />
              <div class="legend">
                <span>
                  <span class="swatch found" /> Found something <strong>{number(foundIn(activity))}</strong>
                </span>
                <span>
                  <span class="swatch stopped" /> Stopped the request <strong>{number(activity.stopped)}</strong>
                </span>
              </div>
              <Facts
                facts={[
                  ['Asked', number(activity.asked)],
                  ...Object.entries(activity.verdicts).map(
                    ([verdict, count]) => [humanize(verdict), number(count)] as const,
                  ),
                  ['Time each', milliseconds(activity.mean_ms)],
                ]}
              />
              <p class="small quiet">{countedWords(found)}</p>
              {hasPermission('events:read') && <a href={href('/traffic', { policy: name })}>See the requests</a>}
            </>
          )
        }}
      </Show>
    </section>
  )
}
