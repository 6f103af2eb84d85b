/**
 * What has fired, as lines of the overview. The text of a firing has the figures of the moment at which it fired. Beside
 * figures of now they would contradict: a line says which threshold was reached, and the screen of the alerts the rest.
 */
import type { ConditionName } from '../../../../alerts/conditions/condition-table.ts'
import type { Budget, Firing } from '../../api/routes.ts'
import { number } from '../../formats.ts'
import type { Cause } from './cause.ts'

type Sentence = (threshold: string, subject: string) => string

/** Null: the text of the firing has no figure that changes. */
const sentences: Readonly<Record<ConditionName, Sentence | null>> = {
  budget_share: (share, budget) => `${budget} has reached ${share} %`,
  spend_rate: (times) => `the spend of an hour reached ${times} times the usual`,
  error_rate: (share, provider) => `${share} % or more of the requests to ${provider} failed`,
  refusals: (share) => `${share} % or more of the requests were refused`,
  escalation_waiting: (minutes) => `a request has waited for a person for ${minutes} minutes or more`,
  token_expiring: (days) => `a token expires within ${days} days`,
  circuit_open: (_, target) => `gateways pass over ${target} after failures`,
  gateway_stale: (seconds) => `a gateway has sent no heartbeat for ${seconds} seconds or more`,
  bound_violated: (_, target) => `${target} charged more than its list price allows`,
  sink_lag: (seconds, sink) => `the sink ${sink} lags behind by ${seconds} seconds or more`,
  doctor_finding: null,
  verify_finding: null,
}

const isCondition = (name: string | null): name is ConditionName => name !== null && Object.hasOwn(sentences, name)

/** One line for each alert and subject: the highest threshold that it reached. */
export function alertCauses(firings: readonly Firing[], budgets: readonly Budget[]): Cause[] {
  const bySubject = Map.groupBy(firings, ({ alert_id, subject }) => `${alert_id} ${subject}`)
  return [...bySubject.values()].flatMap((found) => {
    const worst = found.toSorted((one, other) => other.threshold - one.threshold)[0]
    return worst === undefined ? [] : [causeOf(worst, budgets)]
  })
}

function causeOf(
  { alert, condition, subject, threshold, severity, about, fired_at }: Firing,
  budgets: readonly Budget[],
): Cause {
  const sentence = isCondition(condition) && subject !== 'more' ? sentences[condition] : null
  const name = alert === null ? 'A deleted alert' : `The alert “${alert}”`
  return {
    level: severity === 'info' ? 'notice' : 'degraded',
    what: `${name} has fired: ${sentence?.(number(threshold), subjectName(subject, budgets)) ?? about}`,
    todo: 'Open the alert',
    to: { path: '/alerts', query: { state: 'open' } },
    since: fired_at,
  }
}

/** The budget that `budget/ID@WINDOW` is the account of; any other subject as it is. */
function subjectName(subject: string, budgets: readonly Budget[]): string {
  const id = /^budget\/([^@/]+)/.exec(subject)?.[1]
  if (id === undefined) return subject.startsWith('token/') ? 'the budget of a token' : subject
  return `the budget ${budgets.find((budget) => budget.id === id)?.name ?? ''}`.trim()
}
