/**
 * Sums for charts, so that no chart reads the events themselves (events/README.md). Each outcome of a request counts
 * in one row of each of these groups, by minute, hour and day, and within each by verdict:
 *
 *  kind     key         scopes                          steps
 *  all      ''          its team ('' for none), '*'     minute, hour, day
 *  model    the model   its team, '*'                   minute, hour, day
 *  gateway  its id      its team, '*'                   minute, hour, day
 *  reason   its code    its team                        minute, hour, day; no sketches
 *  token    its id      its team                        hour, day
 *  provider its name    '*'                             minute, hour; no sketches
 *  cost     all of it   its team                        day; no sketches, no verdicts; only what used tokens or money
 *  dimension:NAME  a value  its team                    hour, day; no sketches; one kind for each declared dimension
 *
 * `*` is the sum of all teams, without what belongs to none; of providers with it. The transaction that ingests events queues what is to be
 * counted, equal outcomes added up (pending-rollups.ts), which costs next to nothing. fold.ts adds it to the sums, each
 * outcome once, before a chart is read and every few seconds.
 */
import { toNano } from '../../lib/money.ts'
import { type Event, reportedModel, reportedProvider } from '../event.ts'

export const stepMilliseconds = { minute: 60_000, hour: 3_600_000, day: 86_400_000 } as const
export type Step = keyof typeof stepMilliseconds

/** How long minutes are kept. Hours and days are kept as long as events. */
export const minutesKeptMilliseconds = 48 * 3_600_000

export type RollupKind = 'all' | 'model' | 'gateway' | 'reason' | 'token' | 'provider' | 'cost' | DimensionKind
/** The rows of one dimension of attribution, by its name. Reports and charts name it the same. */
export type DimensionKind = `${typeof dimensionPrefix}${string}`
export const dimensionPrefix = 'dimension:'

/** How many keys that callers can invent a bucket holds. The rest is added to one key, such as `other`. */
export const keysAtMost = (kind: string): number => (kind === 'cost' ? 10_000 : 500)

/** Kinds of which one value of an outcome is the key, and callers can invent it. */
export const hasInventedKeys = (kind: string): boolean =>
  kind === 'model' || kind === 'reason' || kind.startsWith(dimensionPrefix)

/** The scope of all teams together, and that of no team. */
export const everyTeam = '*'
export const noTeam = ''

const longestKey = 200

/** The key, or value, for everything without a row of its own. Longer than any stored model, reason or value. */
export const otherKey = 'other'.padEnd(longestKey + 1, '.')

/**
 * The key that a full bucket counts a key under; null for one that always has a row of its own. Of a cost the values of
 * dimensions become `other`, and all else stays: so sums by anything else are exact, and a value is still told from none.
 */
export function overflowKey(kind: string, key: string): string | null {
  if (hasInventedKeys(kind)) return key === '' ? null : otherKey
  if (kind !== 'cost') return null
  const values = Object.keys(readCostKey(key).dimensions)
  if (values.length === 0) return null
  return `${plainCostKey(key)}${valuesSeparator}${JSON.stringify(Object.fromEntries(values.map((name) => [name, otherKey])))}`
}

export const rollupShapes: readonly {
  /** `dimensions` makes the rows of every kind `dimension:NAME`. */
  kind: Exclude<RollupKind, DimensionKind> | 'dimensions'
  steps: readonly Step[]
  everyTeam: boolean
  /** Has rows for all teams together and no others. */
  ofTeams?: false
  sketched: boolean
}[] = [
  { kind: 'all', steps: ['minute', 'hour', 'day'], everyTeam: true, sketched: true },
  { kind: 'model', steps: ['minute', 'hour', 'day'], everyTeam: true, sketched: true },
  { kind: 'gateway', steps: ['minute', 'hour', 'day'], everyTeam: true, sketched: true },
  { kind: 'reason', steps: ['minute', 'hour', 'day'], everyTeam: false, sketched: false },
  { kind: 'token', steps: ['hour', 'day'], everyTeam: false, sketched: true },
  { kind: 'provider', steps: ['minute', 'hour'], everyTeam: true, ofTeams: false, sketched: false },
  { kind: 'cost', steps: ['day'], everyTeam: false, sketched: false },
  { kind: 'dimensions', steps: ['hour', 'day'], everyTeam: false, sketched: false },
]

/** Whether a kind has rows for all teams together. */
export const hasEveryTeam = (kind: RollupKind): boolean =>
  rollupShapes.find((shape) => shape.kind === kind)?.everyTeam ?? false

/**
 * By which rows are told apart. The key of `cost` is made of the others when it is needed. `dimensions` is JSON with the
 * value of each dimension, or empty.
 */
export type OutcomeKeys = Record<Exclude<RollupKind, 'cost' | DimensionKind> | 'user' | 'dimensions', string>

/** The counted values of one outcome. `at` in milliseconds since the epoch, cost in nano-dollars. */
export interface CountedOutcome {
  at: number
  verdict: string
  scope: string
  keys: OutcomeKeys
  inputTokens: number
  outputTokens: number
  cost: number
  latency: number | null
  firstToken: number | null
}

/** The events that count: outcomes, and what a batch used, which the outcome of the request that made it cannot know. */
export const countedTypes: readonly Event['event_type'][] = ['gateway.request.outcome', 'usage.batch_settled']

/** The counted values of an outcome. `at` is when it happened, as the log says (events/log/append.ts). */
export function countedOutcome(event: Event, at: number): CountedOutcome {
  const { event_attribution: who, details, event_cost_attribution: cost } = event
  return {
    at,
    verdict: event.verdict,
    scope: clipped(who.team_id),
    keys: {
      all: '',
      model: clipped(reportedModel(event)),
      gateway: clipped(who.gateway_id),
      token: clipped(who.token_id),
      reason: clipped(event.reason_code),
      provider: clipped(reportedProvider(event)),
      user: clipped(who.user_id),
      dimensions: who.dimensions === undefined ? '' : dimensionsKey(who.dimensions),
    },
    inputTokens: amount(cost?.input_tokens) ?? 0,
    outputTokens: amount(cost?.output_tokens) ?? 0,
    cost: toNano(amount(cost?.cost) ?? 0),
    latency: amount(details?.latency_ms),
    firstToken: amount(details?.first_token_ms),
  }
}

const dimensionsKey = (values: Readonly<Record<string, string>>): string =>
  JSON.stringify(
    Object.fromEntries(
      Object.entries(values)
        .toSorted(([one], [other]) => (one < other ? -1 : 1))
        .map(([name, value]) => [clipped(name), clipped(value)]),
    ),
  )

/** What a sum of the kind `cost` is of: what is in its key. */
export interface CostOf {
  provider: string
  model: string
  token_id: string
  gateway_id: string
  user_id: string
  /** The value of each dimension of attribution that the requests had. */
  dimensions: Readonly<Record<string, string>>
}

const unitSeparator = '\u001f'
/** Before the values of dimensions, where there are any. */
export const valuesSeparator = '\u001e'

export interface RollupKey {
  kind: RollupKind
  key: string
}

/** The rows of a shape that an outcome counts in. A gateway may have written anything, as far as its type says. */
export function rowsFor(kind: (typeof rollupShapes)[number]['kind'], keys: OutcomeKeys): RollupKey[] {
  if (kind !== 'dimensions') return [{ kind, key: keyOf(kind, keys) }]
  if (keys.dimensions === '') return []
  const values: Readonly<Record<string, string>> = JSON.parse(keys.dimensions)
  return Object.entries(values).map(([name, key]) => ({ kind: `${dimensionPrefix}${name}`, key }))
}

function keyOf(kind: Exclude<RollupKind, DimensionKind>, keys: OutcomeKeys): string {
  if (kind !== 'cost') return keys[kind]
  const { provider, model, token, gateway, user, dimensions } = keys
  const plain = [provider, model, token, gateway, user].map(withoutControls).join(unitSeparator)
  // JSON has no control characters.
  return dimensions === '' ? plain : `${plain}${valuesSeparator}${dimensions}`
}

/** The separators of a key must not be in its parts. */
const withoutControls = (text: string): string => text.replaceAll(/\p{Cc}/gu, '')

export function readCostKey(key: string): CostOf {
  const plain = plainCostKey(key)
  const [provider = '', model = '', token_id = '', gateway_id = '', user_id = ''] = plain.split(unitSeparator)
  return { provider, model, token_id, gateway_id, user_id, dimensions: readValues(key.slice(plain.length + 1)) }
}

const plainCostKey = (key: string): string => key.split(valuesSeparator, 1)[0] ?? ''

/**
 * None where the key was damaged, so that a damaged row keeps no report from being read. Checked by hand: a report reads
 * thousands, and a schema takes several times as long.
 */
function readValues(text: string): CostOf['dimensions'] {
  if (text === '') return {}
  try {
    const read: unknown = JSON.parse(text)
    return isValues(read) ? read : {}
  } catch {
    // It is no JSON.
    return {}
  }
}

function isValues(read: unknown): read is CostOf['dimensions'] {
  if (typeof read !== 'object' || read === null || Array.isArray(read)) return false
  return Object.values(read).every((value) => typeof value === 'string')
}

/**
 * Truncation may halve a surrogate pair, and a worker's event may contain a half, which SQLite cannot store as text.
 */
const clipped = (text: string | null): string => (text ?? '').slice(0, longestKey).toWellFormed()

const amount = (value: unknown): number | null =>
  typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : null
