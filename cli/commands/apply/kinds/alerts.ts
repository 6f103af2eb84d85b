import { alertConfig, alertResource } from '../../../../src/alerts/alert-resource.ts'
import { checkAlert } from '../../../../src/alerts/check-alert.ts'
import { conditionNames, conditionRow } from '../../../../src/alerts/conditions/condition-table.ts'
import { kindOf } from '../kind.ts'
import { type Entry, entryMember } from '../places.ts'

const paths: Readonly<Record<string, string>> = {
  ...{ team: '/v1/teams', gateway: '/v1/gateways', budget: '/v1/budgets', token: '/v1/tokens' },
}

/** The API knows providers and models by their names. */
const scopeOf = (entry: Entry) => {
  const path = paths[String(entryMember(entry.scope, 'kind'))]
  return path === undefined ? null : { path }
}

/** What is as usual for the condition is as if it were left out. */
function withoutUsual(entry: Entry): Entry {
  const condition = conditionNames.find((name) => name === entry.condition)
  if (condition === undefined) return entry
  const { thresholds, windowMinutes, atLeast } = conditionRow(condition)
  const usual = { thresholds, window_minutes: windowMinutes, at_least: atLeast }
  const isUsual = ([name, value]: [string, unknown]) => name in usual && Bun.deepEquals(value, Reflect.get(usual, name))
  return Object.fromEntries(Object.entries(entry).map((field) => (isUsual(field) ? [field[0], null] : field)))
}

export const alerts = kindOf(alertResource, {
  references: { 'scope.id': scopeOf },
  referredPaths: Object.values(paths),
  names: { 'scope.id': 'name' },
  normalised: withoutUsual,
  shown: withoutUsual,
  check(body) {
    const { condition } = alertResource.create.parse(body)
    checkAlert(condition, alertConfig.parse(body))
  },
})
