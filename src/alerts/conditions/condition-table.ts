/**
 * What alerts can watch: what is measured, in which unit, and what holds where an alert does not say it. Pure data, for
 * the description of the record, the evaluation and the handbook.
 */

export const scopeKinds = ['organization', 'team', 'gateway', 'provider', 'model', 'token', 'budget'] as const
export type ScopeKind = (typeof scopeKinds)[number]

interface ConditionRow {
  about: string
  /** Of its thresholds. */
  unit: string
  /** The unit of a threshold of 1. */
  one: string
  /** It fires where the value is at least, or at most, a threshold. */
  fires: 'at_least' | 'at_most'
  thresholds: readonly number[]
  /** The most that is ever measured: a threshold beyond it would never fire; null: there is no most. */
  most: number | null
  /** How far it looks back, where an alert may say another time; null: it may not. */
  windowMinutes: number | null
  /** The least number of requests, or of US dollars, before it fires; null: it counts nothing. */
  atLeast: number | null
  /** For what else than the organization it can be. */
  scopes: readonly ScopeKind[]
}

const traffic: readonly ScopeKind[] = ['team', 'gateway', 'provider', 'model', 'token']

export const conditionTable = {
  budget_share: {
    about: 'A budget is used to a share of its amount',
    unit: '%',
    one: '%',
    fires: 'at_least',
    thresholds: [50, 80, 100],
    most: null,
    windowMinutes: null,
    atLeast: null,
    scopes: ['team', 'token', 'budget'],
  },
  spend_rate: {
    about: 'The spend of an hour is a multiple of the mean hour of the seven days before',
    unit: 'times the usual',
    one: 'times the usual',
    fires: 'at_least',
    thresholds: [3],
    most: null,
    windowMinutes: null,
    atLeast: 1,
    scopes: traffic,
  },
  error_rate: {
    about: 'A share of the requests to a provider fails',
    unit: '%',
    one: '%',
    fires: 'at_least',
    thresholds: [25],
    most: 100,
    windowMinutes: 10,
    atLeast: 20,
    scopes: ['provider'],
  },
  refusals: {
    about: 'A share of the requests is refused, for any reason or for chosen ones',
    unit: '%',
    one: '%',
    fires: 'at_least',
    thresholds: [50],
    most: 100,
    windowMinutes: 10,
    atLeast: 20,
    scopes: traffic,
  },
  escalation_waiting: {
    about: 'A request waits for a person',
    unit: 'minutes',
    one: 'minute',
    fires: 'at_least',
    thresholds: [10],
    most: null,
    windowMinutes: null,
    atLeast: null,
    scopes: ['team'],
  },
  token_expiring: {
    about: 'A token expires soon',
    unit: 'days left',
    one: 'day left',
    fires: 'at_most',
    thresholds: [7],
    most: null,
    windowMinutes: null,
    atLeast: null,
    scopes: ['team', 'token'],
  },
  circuit_open: {
    about: 'Gateways pass a target over after failures',
    unit: 'gateway processes',
    one: 'gateway process',
    fires: 'at_least',
    thresholds: [1],
    most: null,
    windowMinutes: null,
    atLeast: null,
    scopes: ['provider'],
  },
  gateway_stale: {
    about: 'A gateway sends no heartbeat',
    unit: 'seconds',
    one: 'second',
    fires: 'at_least',
    thresholds: [60],
    most: null,
    windowMinutes: null,
    atLeast: null,
    scopes: ['gateway'],
  },
  bound_violated: {
    about: 'A provider charged more than the most that a request can cost by its list price',
    unit: 'US dollars',
    one: 'US dollar',
    fires: 'at_least',
    thresholds: [0],
    most: null,
    windowMinutes: 1440,
    atLeast: null,
    scopes: ['provider'],
  },
  sink_lag: {
    about: 'A sink of events lags behind',
    unit: 'seconds',
    one: 'second',
    fires: 'at_least',
    thresholds: [300],
    most: null,
    windowMinutes: null,
    atLeast: null,
    scopes: [],
  },
  doctor_finding: {
    about: 'Doctor found something wrong: 1 a warning, 2 a failure',
    unit: 'level',
    one: 'level',
    fires: 'at_least',
    thresholds: [2],
    most: 2,
    windowMinutes: null,
    atLeast: null,
    scopes: [],
  },
  verify_finding: {
    about: 'The record of events was altered or lacks something',
    unit: 'findings',
    one: 'finding',
    fires: 'at_least',
    thresholds: [1],
    most: 1,
    windowMinutes: null,
    atLeast: null,
    scopes: [],
  },
} as const satisfies Record<string, ConditionRow>

export type ConditionName = keyof typeof conditionTable

export const conditionNames = Object.keys(conditionTable) as [ConditionName, ...ConditionName[]]

export const conditionRow = (name: ConditionName): ConditionRow => conditionTable[name]
