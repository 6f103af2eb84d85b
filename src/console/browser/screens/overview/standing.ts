/**
 * Whether everything is all right, from what was read: pure data, drawn by status.tsx.
 *
 * An installation is refusing where requests are refused that nobody meant to refuse: a budget is used up, a gateway
 * serves no more, or half of the recent requests end with a refusal or an error. It is degraded where something else is
 * wrong. Notices, such as a token that expires soon, are listed and change nothing.
 */
import type { Alert, Budget, Firing, FoundByDoctor, Series, WaitingServer } from '../../api/routes.ts'
import { ago, countNoun, money, number, percent } from '../../formats.ts'
import { alertCauses } from './alert-causes.ts'
import type { Cause } from './cause.ts'

export type Standing = 'healthy' | 'degraded' | 'refusing'

/** A worker as `/v1/gateway-workers` lists it. */
export interface Worker {
  worker: string
  gateway_id: string
  gateway_name: string
  connected: boolean
  serves_until: string | null
  left_at: string | null
}

export interface Read {
  findings: readonly FoundByDoctor[]
  firings: readonly Firing[]
  budgets: readonly Budget[]
  tokenAlerts: readonly Alert[]
  workers: readonly Worker[]
  /** MCP servers whose offers wait for approval. */
  servers: readonly WaitingServer[]
  /** Of the last `recentMinutes`, by verdict, and by reason: of all requests and of those that failed. */
  recent: { verdicts: Series; reasons: Series; errors: Series } | null
}

export const recentMinutes = 10
/** Below so many requests a share says nothing. */
const fewestRequests = 5
const refusingShare = 0.5
const errorShare = 0.1
const nearShare = 0.8

const order = ['refusing', 'degraded', 'notice'] as const

/** The causes, the worst first. `wordsOf` says a reason code in words. */
export function causesOf(read: Read, wordsOf: (reason: string) => string, now: number): Cause[] {
  return [
    ...read.budgets.flatMap(ofBudget),
    ...spikesOf(read.recent, wordsOf),
    ...read.workers.flatMap((worker) => ofWorker(worker, read.workers, now)),
    ...read.findings.map(ofFinding),
    ...read.servers.map(ofServer),
    ...alertCauses(read.firings, read.budgets),
    ...read.tokenAlerts.map((alert) => ofToken(alert, now)),
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

function ofBudget(budget: Budget): Cause[] {
  const { id, name, current_spend: spent, max_budget: limit, forecast, window } = budget
  if (budget.per !== null) return ofValues(budget)
  const cause = { to: { path: `/budgets/${id}` }, since: null }
  const used = `${money(spent)} of ${money(limit)}`
  if (spent >= limit)
    return [{ ...cause, level: 'refusing', what: `The budget ${name} is used up: ${used}`, todo: 'Raise it, or wait' }]
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

const sumOf = (series: Series, keys: readonly string[]): number =>
  series.totals.reduce((sum, { key, requests }) => (key !== null && keys.includes(key) ? sum + requests : sum), 0)

const refusals = ['deny', 'block', 'rate_limit']

function spikesOf(recent: Read['recent'], wordsOf: (reason: string) => string): Cause[] {
  if (recent === null) return []
  const { verdicts, reasons, errors } = recent
  const all = verdicts.totals.reduce((sum, { requests }) => sum + requests, 0)
  if (all < fewestRequests) return []
  const [failed, refused] = [sumOf(verdicts, ['error']), sumOf(verdicts, refusals)]
  const causes: Cause[] = []
  if (failed / all >= errorShare) {
    causes.push({
      ...spike(`${shareOf(failed, all)} failed${mostly(errors, [], wordsOf)}`, 'error'),
      level: failed / all >= refusingShare ? 'refusing' : 'degraded',
      todo: 'See the failed requests',
    })
  }
  if (refused / all >= refusingShare) {
    // The reasons of failures are counted among all reasons.
    const what = `${shareOf(refused, all)} were refused${mostly(reasons, keysOf(errors), wordsOf)}`
    const most = refusals.toSorted((left, right) => sumOf(verdicts, [right]) - sumOf(verdicts, [left]))[0] ?? 'deny'
    causes.push({ ...spike(what, most), level: 'refusing', todo: 'See the refused requests' })
  }
  return causes
}

const spike = (what: string, verdict: string) => ({
  what,
  to: { path: '/traffic', query: { verdict, range: '15m' } },
  since: null,
})

const shareOf = (some: number, all: number): string =>
  `${percent(some / all)} of the requests of the last ${recentMinutes} minutes (${number(some)} of ${number(all)})`

const keysOf = ({ totals }: Series): string[] => totals.flatMap(({ key }) => key ?? [])

/** The most frequent reason, in words. */
function mostly({ totals }: Series, without: readonly string[], wordsOf: (reason: string) => string): string {
  const found = totals
    .filter(({ key, rest }) => key !== null && key !== 'ok' && !rest && !without.includes(key))
    .toSorted((left, right) => right.requests - left.requests)[0]
  return found?.key == null ? '' : `, most of them because ${wordsOf(found.key)}`
}

/** A process that ended is no cause where another of its gateway is connected. */
function ofWorker(worker: Worker, all: readonly Worker[], now: number): Cause[] {
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
