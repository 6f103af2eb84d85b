/** Conditions about traffic: refusals, errors of providers, spend. */
import { answeredVerdicts } from '../../events/event.ts'
import { otherKey, stepMilliseconds } from '../../events/rollups/rollup.ts'
import { dollars, fromNano } from '../../lib/money.ts'
import { knownReason, reasonWords } from '../../reason-words.ts'
import { someGlobMatches } from '../../tokens/governed-token.ts'
import type { Measured } from '../dependencies.ts'
import type { Alert } from '../stored-alert.ts'
import { type KeySums, lastMinutes, type Round, shownKey, trafficOf } from './round.ts'
import { scopePhrase } from './scope-name.ts'

const refusing: readonly string[] = ['deny', 'block', 'rate_limit']
/** Of requests that were answered. A chosen reason may be that of a redaction, which refuses nothing. */
const answered: readonly string[] = answeredVerdicts
const reasonsShown = 5

const requestsOf = (sums: readonly KeySums[]): number => sums.reduce((sum, { requests }) => sum + requests, 0)
const percent = (part: number, whole: number): number => (whole === 0 ? 0 : (100 * part) / whole)
const rounded = (value: number): string => String(Math.round(value * 10) / 10)

export async function refusals(alert: Alert, round: Round): Promise<Measured[]> {
  const { kind, teamId, key } = trafficOf(alert)
  const window = lastMinutes(round, kind, alert.windowMinutes)
  const all = await round.traffic({ kind, teamId, key, ...window })
  // Reasons are kept by team only; for the rest of the scopes every refusal counts.
  const byReason = kind === 'all' ? () => round.traffic({ kind: 'reason', teamId, key: null, ...window }) : null
  const isChosen = ({ key: reason, verdict }: KeySums): boolean =>
    alert.reasons.length === 0
      ? refusing.includes(verdict)
      : !answered.includes(verdict) && someGlobMatches(alert.reasons, reason)
  const refused = requestsOf(
    alert.reasons.length === 0 || byReason === null
      ? all.filter(({ verdict }) => refusing.includes(verdict))
      : (await byReason()).filter(isChosen),
  )
  if (refused < alert.atLeast || refused === 0) return []
  const total = requestsOf(all)
  const value = Math.min(100, percent(refused, total))
  return [
    {
      subject: subjectOf(alert),
      value,
      async about() {
        const of = await scopePhrase('of', alert, round.dependencies)
        const share = `${refused} of ${total} requests${of} were refused within ${alert.windowMinutes} minutes (${rounded(value)} %)`
        if (byReason === null) return `${share}.`
        const reasons = (await byReason())
          .filter(isChosen)
          .toSorted((left, right) => right.requests - left.requests)
          .slice(0, reasonsShown)
          .map(({ key: reason, requests }) => shownReason(reason, requests))
        return `${share}. Reasons: ${reasons.join('; ')}.`
      },
    },
  ]
}

/** `its token has expired (25, tokens.expired)`. */
function shownReason(reason: string, requests: number): string {
  if (reason === otherKey) return `others (${requests})`
  const code = knownReason(reason) === undefined ? '' : `, ${reason}`
  return `${reasonWords(reason)} (${requests}${code})`
}

export async function errorRate(alert: Alert, round: Round): Promise<Measured[]> {
  const key = alert.scope.kind === 'provider' ? alert.scope.id : null
  const window = lastMinutes(round, 'provider', alert.windowMinutes)
  const sums = await round.traffic({ kind: 'provider', teamId: null, key, ...window })
  const byProvider = Map.groupBy(sums, (row) => row.key)
  return [...byProvider].flatMap(([provider, rows]) => {
    // What a policy or a limit refused says nothing of the provider.
    const [failed, answered] = [
      requestsOf(rows.filter(({ verdict }) => verdict === 'error')),
      requestsOf(rows.filter(({ verdict }) => !refusing.includes(verdict))),
    ]
    if (provider === '' || answered < alert.atLeast || failed === 0) return []
    const value = percent(failed, answered)
    const about = () =>
      `${failed} of ${answered} requests to ${shownKey(provider)} failed within ${alert.windowMinutes} minutes (${rounded(value)} %).`
    return [{ subject: provider, value, about }]
  })
}

const usualHours = 7 * 24
/** With less history there is no usual. */
const leastHours = 24

export async function spendRate(alert: Alert, round: Round): Promise<Measured[]> {
  const { kind, teamId, key } = trafficOf(alert)
  const recent = await round.traffic({ kind, teamId, key, ...lastMinutes(round, kind, 60) })
  const spent = fromNano(recent.reduce((sum, { cost }) => sum + cost, 0))
  if (spent < alert.atLeast || spent === 0) return []
  const { hour } = stepMilliseconds
  const until = round.now - (round.now % hour) - hour
  const from = until - usualHours * hour
  const before = { kind, teamId, key, from, until }
  // Quiet hours count. Only those before the first request of all do not.
  const first = await round.firstRecord(before)
  const hours = first === null ? 0 : (until - Math.max(first, from)) / hour
  if (hours < leastHours) return []
  const sums = await round.traffic({ ...before, step: 'hour' })
  const usual = fromNano(sums.reduce((sum, { cost }) => sum + cost, 0)) / hours
  if (usual === 0) return []
  const value = spent / usual
  const about = async () =>
    `${dollars(spent)} were spent${await scopePhrase('for', alert, round.dependencies)} in the last hour, ${rounded(value)} times the mean hour of the ${Math.round(hours / 24)} days before (${dollars(usual)}).`
  return [{ subject: subjectOf(alert), value, about }]
}

const subjectOf = ({ scope: { kind, id } }: Alert): string => (id === null ? kind : `${kind} ${id}`)
