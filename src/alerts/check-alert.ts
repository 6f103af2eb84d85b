/** What of an alert no schema can say: which fields its condition has. */
import { Failure } from '../failure.ts'
import type { AlertConfig } from './alert-resource.ts'
import { type ConditionName, conditionRow } from './conditions/condition-table.ts'

/** Refuses what the condition would not look at. */
export function checkAlert(condition: ConditionName, config: AlertConfig): void {
  const { scopes, windowMinutes, atLeast, most, unit } = conditionRow(condition)
  const { kind } = config.scope
  if (kind !== 'organization' && !scopes.includes(kind)) {
    const possible = ['organization', ...scopes].join(', ')
    throw wrong('scope.kind', `The condition ${condition} is for one of: ${possible}`)
  }
  const beyond = config.thresholds?.findIndex((threshold) => most !== null && threshold > most) ?? -1
  if (beyond >= 0) {
    throw wrong(
      `thresholds.${beyond}`,
      `The condition ${condition} is never above ${most} (${unit}): write ${most} or less`,
    )
  }
  if (config.window_minutes !== null && windowMinutes === null) {
    throw wrong('window_minutes', `The condition ${condition} has no window that can be chosen: leave it out`)
  }
  if (config.at_least !== null && atLeast === null) {
    throw wrong('at_least', `The condition ${condition} has no least number: leave it out`)
  }
  const isOfReasons = condition === 'refusals' && (kind === 'organization' || kind === 'team')
  if (config.reasons.length > 0 && !isOfReasons) {
    throw wrong('reasons', 'Reasons can be chosen for refusals of the organization or a team')
  }
}

const wrong = (param: string, message: string): Failure => new Failure('invalid_parameter', { param, message })
