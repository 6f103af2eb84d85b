/** The first line of the overview: healthy, degraded or refusing, with each cause by name and its next step. */

import { reasonWords } from '../../../../reason-words.ts'
import { href } from '../../address.ts'
import { request } from '../../api/request.ts'
import { api, type Budget, type Firing } from '../../api/routes.ts'
import { countNoun, number } from '../../formats.ts'
import { useWaitingServers } from '../../parts/frame/waiting.tsx'
import { Icon } from '../../parts/icon.tsx'
import { ErrorNote, Skeleton, useLoaded } from '../../parts/loaded.tsx'
import { Time } from '../../parts/small.tsx'
import { showInvisible } from '../../parts/user-text.tsx'
import { hasPermission } from '../../session.ts'
import { spentOf } from '../budgets/budget-use.tsx'
import type { Cause } from './cause.ts'
import { causesOf, type Read, recentMinutes, type Standing, standingOf, type Worker } from './standing.ts'

const shownAtMost = 8

/** Each part by itself: where one cannot be read, the others are still said. */
function useRead() {
  const operates = hasPermission('catalog:read')
  const everyMs = 15_000
  const [budgets, servers] = [useBudgets(), useWaitingServers()]
  const parts = {
    findings: useLoaded(
      'findings',
      async (signal) => (operates ? (await api('GET /v1/findings', { signal })).findings : []),
      { everyMs: 60_000 },
    ),
    firings: useLoaded('firings', (signal) => (operates ? readFirings(signal) : Promise.resolve([])), { everyMs }),
    workers: useLoaded('status workers', (signal) => (operates ? readWorkers(signal) : Promise.resolve([])), {
      everyMs,
    }),
    tokenAlerts: useLoaded(
      'token alerts',
      async (signal) =>
        hasPermission('tokens:read') ? (await api('GET /v1/tokens/alerts', { query: {}, signal })).alerts : [],
      { everyMs: 60_000 },
    ),
    recent: useLoaded('recent', readRecent, { everyMs }),
  }
  return { ...parts, budgets, servers }
}

/** The budgets that the caller sees, the fullest first. */
export const useBudgets = () =>
  useLoaded(
    'budgets',
    async (signal): Promise<Budget[]> => {
      const found: Budget[] = []
      let cursor: string | null = hasPermission('catalog:read') ? '' : null
      while (cursor !== null) {
        const query: Record<string, string | number | null> = { limit: 100, cursor: cursor || null }
        const page: { budgets: Budget[]; next_cursor: string | null } = await request('GET', '/v1/budgets', {
          query,
          signal,
        })
        found.push(...page.budgets)
        cursor = page.next_cursor
      }
      return found.toSorted((left, right) => shareOf(right) - shareOf(left))
    },
    { everyMs: 60_000 },
  )

const shareOf = (budget: Budget): number => spentOf(budget) / budget.max_budget

async function readFirings(signal: AbortSignal): Promise<Firing[]> {
  const query = { state: 'open', limit: 100 }
  return (await request<{ alert_firings: Firing[] }>('GET', '/v1/alert-firings', { query, signal })).alert_firings
}

async function readWorkers(signal: AbortSignal): Promise<Worker[]> {
  return (await request<{ workers: Worker[] }>('GET', '/v1/gateway-workers', { query: { limit: 100 }, signal })).workers
}

async function readRecent(signal: AbortSignal): Promise<Read['recent']> {
  // Sums of the same instants, so that they agree.
  const now = Date.now()
  const since = new Date(now - recentMinutes * 60_000).toISOString()
  const until = new Date(now).toISOString()
  const [verdicts, reasons, errors] = await Promise.all([
    api('GET /v1/events/series', { query: { since, until, by: 'verdict' }, signal }),
    api('GET /v1/events/series', { query: { since, until, by: 'reason' }, signal }),
    api('GET /v1/events/series', { query: { since, until, by: 'reason', verdict: 'error' }, signal }),
  ])
  return { verdicts, reasons, errors }
}

const looks = {
  healthy: { note: '', verdict: 'allow', icon: 'allow', title: 'Healthy' },
  degraded: { note: 'warn', verdict: 'rate_limit', icon: 'error', title: 'Degraded' },
  refusing: { note: 'danger', verdict: 'deny', icon: 'deny', title: 'Refusing' },
} as const

const sentences: Readonly<Record<Standing, string>> = {
  healthy: 'Requests are served, and nothing needs you.',
  degraded: 'Requests are served, but something is wrong.',
  refusing: 'Requests are being refused that should be served.',
}

export function Status() {
  const read = useRead()
  const parts = Object.values(read)
  const failed = parts.filter(({ refusal }) => refusal !== null)
  const known = parts.every(({ value, refusal }) => value !== undefined || refusal !== null)
  const causes = causesOf(
    {
      findings: read.findings.value ?? [],
      firings: read.firings.value ?? [],
      budgets: read.budgets.value ?? [],
      workers: read.workers.value ?? [],
      servers: read.servers.value ?? [],
      tokenAlerts: read.tokenAlerts.value ?? [],
      recent: read.recent.value ?? null,
    },
    reasonWords,
    Date.now(),
  )
  const [failure] = failed
  if (!known) return <Skeleton rows={2} />
  return (
    <>
      {failure?.refusal != null && (
        <ErrorNote
          refusal={failure.refusal}
          retry={() => {
            for (const part of failed) part.retry()
          }}
        />
      )}
      {failure === undefined || standingOf(causes) !== 'healthy' ? <Stated causes={causes} /> : null}
    </>
  )
}

function Stated({ causes }: { causes: readonly Cause[] }) {
  const standing = standingOf(causes)
  const { note, verdict, icon, title } = looks[standing]
  const notices = causes.filter(({ level }) => level === 'notice').length
  const advice =
    standing === 'healthy' && notices > 0
      ? `Requests are served. ${countNoun(notices, 'notice')} below.`
      : sentences[standing]
  return (
    <section class={`note ${note} stack close`} aria-label="Status">
      <p class="lead" role="status">
        <span class="badge lead" data-verdict={verdict}>
          <Icon name={icon} />
          {title}
        </span>{' '}
        {advice}
      </p>
      {causes.length > 0 && (
        <ul class="stack close">
          {causes.slice(0, shownAtMost).map((cause) => (
            <Line key={`${cause.what} ${cause.since}`} cause={cause} />
          ))}
        </ul>
      )}
      {causes.length > shownAtMost && (
        <details>
          <summary>{number(causes.length - shownAtMost)} more</summary>
          <ul class="stack close">
            {causes.slice(shownAtMost).map((cause) => (
              <Line key={`${cause.what} ${cause.since}`} cause={cause} />
            ))}
          </ul>
        </details>
      )}
    </section>
  )
}

const Line = ({ cause: { what, todo, to, since } }: { cause: Cause }) => (
  <li>
    <span>{showInvisible(/[.!?]$/.test(what) ? what : `${what}.`)}</span>{' '}
    {to === null ? <span>{showInvisible(todo)}</span> : <a href={href(to.path, to.query)}>{todo}</a>}
    {since !== null && (
      <span class="quiet">
        {' '}
        (since <Time at={since} />)
      </span>
    )}
  </li>
)
