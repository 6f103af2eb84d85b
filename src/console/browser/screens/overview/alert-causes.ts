/**
 * What has fired, as lines of the overview. The text of a firing has the figures of the moment at which it fired. Beside
 * figures of now they would contradict: a line says which threshold was reached, and the screen of the alerts the rest.
 * Only the text of the firing says it of one value of a budget, of a count of further things, and of an alert for a part
 * of the organization.
 */
import type { ConditionName, conditionTable } from '../../../../alerts/conditions/condition-table.ts'
import type { Budget, Firing } from '../../api/routes.ts'
import { countNoun, number } from '../../formats.ts'
import type { Cause } from './cause.ts'

type Sentence = (threshold: number, subject: string) => string

/** Null: the text of the firing has no figure that changes. */
const sentences: Readonly<Record<ConditionName, Sentence | null>> = {
  budget_share: (share, budget) => `${budget} has reached ${number(share)} %`,
  spend_rate: (times) => `the spend of an hour reached ${number(times)} times the usual`,
  error_rate: (share, provider) => `${number(share)} % or more of the requests to ${provider} failed`,
  refusals: (share) => `${number(share)} % or more of the requests were refused`,
  escalation_waiting: (minutes) => `a request has waited for a person for ${countNoun(minutes, 'minute')} or more`,
  token_expiring: (days) => `a token expires within ${countNoun(days, 'day')}`,
  circuit_open: (_, target) => `gateways pass over ${target} after failures`,
  gateway_stale: (seconds) => `a gateway has sent no heartbeat for ${countNoun(seconds, 'second')} or more`,
  bound_violated: (_, target) => `${target} charged more than its list price allows`,
  sink_lag: (seconds, sink) => `the sink ${sink} lags behind by ${countNoun(seconds, 'second')} or more`,
  doctor_finding: null,
  verify_finding: null,
}

type Table = typeof conditionTable
type AtMost = { [Name in ConditionName]: Table[Name]['fires'] extends 'at_most' ? Name : never }[ConditionName]
/** The conditions of which a lower threshold is further beyond. */
const atMost: Readonly<Record<AtMost, true>> = { token_expiring: true }

const isCondition = (name: string | null): name is ConditionName => name !== null && Object.hasOwn(sentences, name)

/** How many further things there are, such as `more` and `budget/ID@2026-11-01 more`. */
const isOverflow = (subject: string): boolean => /(?:^| )more$/.test(subject)
/** One value of a budget, the budget of one token, or what an alert for a part of the organization is about. */
const isPart = (subject: string): boolean =>
  /^(?:budget\/[^@/]+\/|token\/|(?:team|gateway|provider|model|token) )/.test(subject)

/** One line for each alert and subject: the threshold furthest beyond that it reached. */
export function alertCauses(firings: readonly Firing[], budgets: readonly Budget[]): Cause[] {
  const bySubject = Map.groupBy(firings, ({ alert_id, subject }) => `${alert_id} ${subject}`)
  return [...bySubject.values()].flatMap((found) => {
    const furthest = found.toSorted((one, other) => sign(one) * (other.threshold - one.threshold))[0]
    return furthest === undefined ? [] : [causeOf(furthest, budgets)]
  })
}

const sign = ({ condition, subject }: Firing): 1 | -1 =>
  condition !== null && Object.hasOwn(atMost, condition) && !isOverflow(subject) ? -1 : 1

function causeOf(
  { alert, condition, subject, threshold, severity, about, fired_at }: Firing,
  budgets: readonly Budget[],
): Cause {
  const sentence = isCondition(condition) && !isOverflow(subject) && !isPart(subject) ? sentences[condition] : null
  const name = alert === null ? 'A deleted alert' : `The alert “${alert}”`
  return {
    level: severity === 'info' ? 'notice' : 'degraded',
    what: `${name} has fired: ${sentence?.(threshold, subjectName(subject, budgets)) ?? about}`,
    todo: 'Open the alert',
    to: { path: '/alerts', query: { state: 'open' } },
    since: fired_at,
  }
}

/** The budget that `budget/ID@WINDOW` is the account of; any other subject as it is. */
function subjectName(subject: string, budgets: readonly Budget[]): string {
  const id = /^budget\/([^@/]+)/.exec(subject)?.[1]
  if (id === undefined) return subject
  return `the budget ${budgets.find((budget) => budget.id === id)?.name ?? ''}`.trim()
}
