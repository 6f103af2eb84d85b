/** The first line of the overview: healthy, degraded or refusing, with each cause by name and its next step. */

import { useEffect, useState } from 'preact/hooks'
import { reasonWords } from '../../../../reason-words.ts'
import { href } from '../../address.ts'
import { everyPage } from '../../api/every-page.ts'
import { api, type Budget } from '../../api/routes.ts'
import { countNoun, number, withTimes } from '../../formats.ts'
import { readingOfServers } from '../../parts/frame/waiting.tsx'
import { Icon } from '../../parts/icon.tsx'
import { ErrorNote, type Loaded, Skeleton, useLoaded } from '../../parts/loaded.tsx'
import { Time } from '../../parts/small.tsx'
import { showInvisible } from '../../parts/user-text.tsx'
import { hasPermission } from '../../session.ts'
import { spentOf } from '../budgets/budget-use.tsx'
import type { Cause } from './cause.ts'
import { causesOf, type Standing, standingOf } from './standing.ts'

const shownAtMost = 8
const oftenMs = 15_000
const seldomMs = 60_000

/** Each part by itself: where one cannot be read, the others are still said. */
function useParts() {
  const operates = hasPermission('catalog:read')
  const seesTokens = hasPermission('tokens:read')
  return {
    recent: useLoaded('recent', (signal) => api('GET /v1/events/recent', { signal }), { everyMs: oftenMs }),
    budgets: useOptional('budgets', operates, readBudgets, seldomMs),
    firings: useOptional('firings', operates, readFirings, oftenMs),
    workers: useOptional('workers', operates, readWorkers, oftenMs),
    findings: useOptional('findings', operates, readFindings, seldomMs),
    tokenAlerts: useLoaded(
      'token alerts',
      async (signal) => (seesTokens ? await api('GET /v1/tokens/alerts', { query: { limit: 100 }, signal }) : null),
      { everyMs: seldomMs },
    ),
    failedTests: useOptional('failed tests', operates, readFailedTests, seldomMs),
    servers: readingOfServers(),
  }
}

/** Reads a list; without the permission it is empty. */
const useOptional = <Item,>(
  key: string,
  permitted: boolean,
  read: (signal: AbortSignal) => Promise<readonly Item[]>,
  everyMs: number,
): Loaded<readonly Item[]> => useLoaded(key, (signal) => (permitted ? read(signal) : Promise.resolve([])), { everyMs })

/** The fullest first. */
async function readBudgets(signal: AbortSignal): Promise<Budget[]> {
  const found = await everyPage(
    (query) => api('GET /v1/budgets', { query, signal }),
    ({ budgets }) => budgets,
  )
  return found.toSorted((left, right) => shareOf(right) - shareOf(left))
}

const shareOf = (budget: Budget): number => spentOf(budget) / budget.max_budget

/** All that are open: the status must not say less than there is. */
const readFirings = (signal: AbortSignal) =>
  everyPage(
    (query) => api('GET /v1/alert-firings', { query: { state: 'open', ...query }, signal }),
    (page) => page.alert_firings,
  )

const readWorkers = (signal: AbortSignal) =>
  everyPage(
    (query) => api('GET /v1/gateway-workers', { query, signal }),
    ({ workers }) => workers,
  )

const readFailedTests = async (signal: AbortSignal) =>
  (await api('GET /v1/catalog/failed-provider-tests', { signal })).failed_tests

const readFindings = async (signal: AbortSignal) => (await api('GET /v1/findings', { signal })).findings

/** What else is shown waits so long at most for the status. */
const othersWaitMs = 300

export interface ReadStatus {
  parts: ReturnType<typeof useParts>
  /** Whether every part was read or refused. */
  isKnown: boolean
  /** Whether the rest of the screen may ask the control plane. */
  isRead: boolean
}

export function useStatus(): ReadStatus {
  const parts = useParts()
  const isKnown = Object.values(parts).every(({ value, refusal }) => value !== undefined || refusal !== null)
  const [isLate, setLate] = useState(false)
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), othersWaitMs)
    return () => clearTimeout(timer)
  }, [])
  return { parts, isKnown, isRead: isKnown || isLate }
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

export function Status({ of: { parts, isKnown } }: { of: ReadStatus }) {
  const failed = Object.values(parts).filter(({ refusal }) => refusal !== null)
  const causes = causesOf(
    {
      findings: parts.findings.value ?? [],
      firings: parts.firings.value ?? [],
      budgets: parts.budgets.value ?? [],
      workers: parts.workers.value ?? [],
      servers: parts.servers.value ?? [],
      failedTests: parts.failedTests.value ?? [],
      tokenAlerts: parts.tokenAlerts.value?.alerts ?? [],
      hasMoreTokenAlerts: parts.tokenAlerts.value?.next_cursor != null,
      recent: parts.recent.value ?? null,
    },
    { wordsOf: reasonWords, now: Date.now(), mayChange: hasPermission('catalog:write') },
  )
  const [failure] = failed
  if (!isKnown) return <Skeleton rows={2} />
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
    <span>{showInvisible(withTimes(/[.!?]$/.test(what) ? what : `${what}.`))}</span>{' '}
    {to === null ? <span>{showInvisible(todo)}</span> : <a href={href(to.path, to.query)}>{todo}</a>}
    {since !== null && (
      <span class="quiet">
        {' '}
        (since <Time at={since} />)
      </span>
    )}
  </li>
)
