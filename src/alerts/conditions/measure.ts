/** How each condition is measured. Null: it is not known now. */
import type { Measured } from '../dependencies.ts'
import type { Alert } from '../stored-alert.ts'
import type { ConditionName } from './condition-table.ts'
import { circuitOpen, foundBy, gatewayStale } from './fleet.ts'
import { boundViolated, budgetShare, escalationWaiting, tokenExpiring } from './limits.ts'
import type { Round } from './round.ts'
import { errorRate, refusals, spendRate } from './traffic.ts'

type Measure = (alert: Alert, round: Round) => Promise<readonly Measured[] | null>

export const measures: Readonly<Record<ConditionName, Measure>> = {
  budget_share: budgetShare,
  spend_rate: spendRate,
  error_rate: errorRate,
  refusals,
  escalation_waiting: escalationWaiting,
  token_expiring: tokenExpiring,
  circuit_open: circuitOpen,
  gateway_stale: gatewayStale,
  bound_violated: boundViolated,
  sink_lag: foundBy('sinkLag'),
  doctor_finding: foundBy('doctor'),
  verify_finding: foundBy('verify'),
}
