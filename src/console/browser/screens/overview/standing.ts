/**
 * Whether everything is all right, from what was read: pure data, drawn by status.tsx.
 *
 * An installation is refusing where requests are refused that nobody meant to refuse: a budget is used up, a gateway
 * serves no more, or half of the recent requests end with a refusal or an error. It is degraded where something else is
 * wrong, such as a provider or a model that fails. Notices, such as a token that expires soon, are listed and change
 * nothing.
 */
import type {
  Alert,
  Budget,
  FailedTest,
  Firing,
  FoundByDoctor,
  Recent,
  WaitingServer,
  Worker,
} from '../../api/routes.ts'
import { ago, countNoun, money, number, percent } from '../../formats.ts'
import { alertCauses } from './alert-causes.ts'
import type { Cause } from './cause.ts'

export type Standing = 'healthy' | 'degraded' | 'refusing'

export interface Read {
  findings: readonly FoundByDoctor[]
  firings: readonly Firing[]
  budgets: readonly Budget[]
  tokenAlerts: readonly Alert[]
  /** Whether there are more than were read. */
  hasMoreTokenAlerts: boolean
  workers: readonly Pick<Worker, 'gateway_id' | 'gateway_name' | 'connected' | 'serves_until' | 'left_at'>[]
  /** MCP servers whose offers wait for approval. */
  servers: readonly WaitingServer[]
  failedTests: readonly FailedTest[]
  recent: Recent | null
}

export interface Reader {
  /** Says a reason code in words. */
  wordsOf(reason: string): string
  now: number
  /** Whether the reader may change the catalog, which holds the budgets. */
  mayChange: boolean
}

/** Below so many requests a share says nothing. */
const fewestRequests = 5
const refusingShare = 0.5
const errorShare = 0.1
const nearShare = 0.8

const order = ['refusing', 'degraded', 'notice'] as const

/** The causes, the worst first. A next step is one that the reader may take. */
export function causesOf(read: Read, reader: Reader): Cause[] {
  const { wordsOf, now, mayChange } = reader
  return [
    ...read.budgets.flatMap((budget) => ofBudget(budget, mayChange)),
    ...spikesOf(read.recent, wordsOf),
    ...(read.recent?.failing.map(ofFailing) ?? []),
    ...read.workers.flatMap((worker) => ofWorker(worker, read.workers, now)),
    ...read.failedTests.map((test) => ofTest(test, mayChange)),
    ...read.findings.map(ofFinding),
    ...read.servers.map(ofServer),
    ...alertCauses(read.firings, read.budgets),
    ...read.tokenAlerts.map((alert) => ofToken(alert, now)),
    ...(read.hasMoreTokenAlerts ? [moreTokens] : []),
  ].toSorted((left, right) => order.indexOf(left.level) - order.indexOf(right.level))
}

export function standingOf(causes: readonly Cause[]): Standing {
  if (causes.some(({ level }) => level === 'refusing')) return 'refusing'
  return causes.some(({ level }) => level === 'degraded') ? 'degraded' : 'healthy'
}

/** Where each value of a dimension has the amount, a value that used it up stops nobody else. */
function ofValues({ id, name, per, values }: Budget): Cause[] {
  if (values === null || values.exhausted + values.nearly_exhausted === 0) return []
  const { exhausted, nearly_exhausted: nearly } = values
  const [count, state] = exhausted > 0 ? [exhausted, 'used up'] : [nearly, 'nearly used up']
  const what = `The budget ${name} is ${state} for ${number(count)} of ${number(values.count)} values of ${per}`
  return [{ level: 'notice', what, todo: 'See which', to: { path: `/budgets/${id}` }, since: null }]
}

function ofBudget(budget: Budget, mayChange: boolean): Cause[] {
  const { id, name, current_spend: spent, max_budget: limit, forecast, window } = budget
  if (budget.per !== null) return ofValues(budget)
  const cause = { to: { path: `/budgets/${id}` }, since: null }
  const used = `${money(spent)} of ${money(limit)}`
  if (spent >= limit) {
    const todo = mayChange ? 'Raise it, or wait' : 'See who uses it'
    return [{ ...cause, level: 'refusing', what: `The budget ${name} is used up: ${used}`, todo }]
  }
  if (spent >= limit * nearShare)
    return [
      { ...cause, level: 'notice', what: `The budget ${name} is nearly used up: ${used}`, todo: 'See who uses it' },
    ]
  if (forecast !== null && forecast > limit) {
    const what = `The budget ${name} will not last: ${money(forecast)} by the end of the ${window}, of ${money(limit)}`
    return [{ ...cause, level: 'notice', what, todo: 'See who uses it' }]
  }
  return []
}

type Outcomes = Recent['outcomes']

const sumOf = (outcomes: Outcomes): number => outcomes.reduce((sum, { requests }) => sum + requests, 0)

const refusals = ['deny', 'block', 'rate_limit']

function spikesOf(recent: Recent | null, wordsOf: Reader['wordsOf']): Cause[] {
  if (recent === null) return []
  const { outcomes, minutes } = recent
  const all = sumOf(outcomes)
  if (all < fewestRequests) return []
  const of = (verdicts: readonly string[]) => outcomes.filter(({ verdict }) => verdicts.includes(verdict))
  const shareOf = (some: number) =>
    `${percent(some / all)} of the requests of the last ${countNoun(minutes, 'minute')} (${number(some)} of ${number(all)})`
  const [failures, refused] = [of(['error']), of(refusals)]
  const causes: Cause[] = []
  if (sumOf(failures) / all >= errorShare) {
    causes.push({
      ...spike(`${shareOf(sumOf(failures))} failed${mostly(failures, wordsOf)}`, 'error'),
      level: sumOf(failures) / all >= refusingShare ? 'refusing' : 'degraded',
      todo: 'See the failed requests',
    })
  }
  if (sumOf(refused) / all >= refusingShare) {
    const what = `${shareOf(sumOf(refused))} were refused${mostly(refused, wordsOf)}`
    const most = refusals.toSorted((left, right) => sumOf(of([right])) - sumOf(of([left])))[0] ?? 'deny'
    causes.push({ ...spike(what, most), level: 'refusing', todo: 'See the refused requests' })
  }
  return causes
}

const spike = (what: string, verdict: string) => ({
  what,
  to: { path: '/traffic', query: { verdict, range: '15m' } },
  since: null,
})

/** The most frequent reason, in words. */
function mostly(outcomes: Outcomes, wordsOf: Reader['wordsOf']): string {
  const [most] = [...Map.groupBy(outcomes, ({ reason_code }) => reason_code)].toSorted(
    ([, left], [, right]) => sumOf(right) - sumOf(left),
  )
  return most === undefined ? '' : `, most of them because ${wordsOf(most[0])}`
}

const ofFailing = ({ kind, name, requests, failed, since }: Recent['failing'][number]): Cause => ({
  level: 'degraded',
  what: `The ${kind} ${name} fails ${percent(failed / requests)} of its requests (${number(failed)} of ${number(requests)})`,
  todo: 'See the failed requests',
  to: { path: '/traffic', query: { [kind]: name, verdict: 'error', range: '1h' } },
  since,
})

const ofTest = ({ provider_id, name, at }: FailedTest, mayChange: boolean): Cause => ({
  level: 'degraded',
  what: `The last connection test of the provider ${name} failed, and it has answered no request since`,
  todo: mayChange ? 'Test it again' : 'See the provider',
  to: { path: '/catalog', query: { kind: 'providers', open: provider_id } },
  since: at,
})

/** A process that ended is no cause where another of its gateway is connected. */
function ofWorker(worker: Read['workers'][number], all: Read['workers'], now: number): Cause[] {
  const { gateway_name: name, connected, left_at, serves_until } = worker
  const to = { path: '/catalog', query: { kind: 'gateways' } }
  if (connected || left_at !== null) return []
  if (all.some((other) => other.gateway_id === worker.gateway_id && other.connected)) return []
  if (serves_until !== null && Date.parse(serves_until) > now) {
    const what = `The gateway ${name} has lost the control plane and serves until its copy of the state is too old`
    return [{ level: 'degraded', what, todo: 'Check its network and its process', to, since: null }]
  }
  const what = `The gateway ${name} is out of reach: if it still runs, it refuses every request`
  return [{ level: 'refusing', what, todo: 'Start it, or check its network', to, since: serves_until }]
}

const ofFinding = ({ what, todo, since }: FoundByDoctor): Cause => ({ level: 'degraded', what, todo, to: null, since })

/** A tool that changed is withheld from callers until somebody has compared its definitions. */
function ofServer({ id, name, changed, added, names, since }: WaitingServer): Cause {
  const count = changed + added
  const listed = `${names.join(', ')}${count > names.length ? ` and ${number(count - names.length)} more` : ''}`
  const what =
    changed > 0
      ? `The MCP server ${name} has changed what it offers, and callers are not shown it: ${listed}`
      : `The MCP server ${name} has added ${countNoun(added, 'offer')}, which callers are not shown: ${listed}`
  return {
    ...{ level: changed > 0 ? 'degraded' : 'notice', what, since },
    todo: 'Compare and approve',
    to: { path: '/catalog', query: { kind: 'mcp-servers', held: id } },
  }
}

function ofToken({ condition, token_id, name, at }: Alert, now: number): Cause {
  const isAhead = at !== null && Date.parse(at) > now
  const what = `The token ${name} ${condition === 'expiring' && isAhead ? `expires ${ago(at, now)}` : tokenWords[condition]}`
  return {
    level: 'notice',
    what,
    todo: 'Open the token',
    to: { path: `/tokens/${token_id}` },
    since: isAhead ? null : at,
  }
}

const moreTokens: Cause = {
  level: 'notice',
  what: 'More tokens need attention than are named here',
  todo: 'See all tokens',
  to: { path: '/tokens' },
  since: null,
}

/** What a token's own alerts say. */
export const tokenWords: Readonly<Record<Alert['condition'], string>> = {
  budget_near_exhaustion: 'has nearly spent its budget',
  budget_exhausted: 'has spent its budget',
  request_near_exhaustion: 'has nearly used its requests',
  request_exhausted: 'has used its requests',
  bound_exceeded: 'was charged more by a provider than the list price',
  expiring: 'expires soon',
  expired: 'has expired',
  rotation_due: 'is due for rotation',
  emergency_revoked: 'was revoked in an emergency',
}
