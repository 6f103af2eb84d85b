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
 *  cost     all of it   its team                        day; no sketches; only what used tokens or money
 *  dimension:NAME  a value  its team                    hour, day; no sketches; one kind for each declared dimension
 *
 * `*` is the sum of all teams, without what belongs to none; of providers with it. The transaction that ingests events queues what is to be
 * counted, equal outcomes added up (pending-rollups.ts), which costs next to nothing. fold.ts adds it to the sums, each
 * outcome once, before a chart is read and every few seconds.
 */
import { toNano } from '../../lib/money.ts'
import type { Event } from '../event.ts'

export const stepMilliseconds = { minute: 60_000, hour: 3_600_000, day: 86_400_000 } as const
export type Step = keyof typeof stepMilliseconds

/** How long minutes are kept. Hours and days are kept as long as events. */
export const minutesKeptMilliseconds = 48 * 3_600_000

export type RollupKind = 'all' | 'model' | 'gateway' | 'reason' | 'token' | 'provider' | 'cost' | DimensionKind
/** The rows of one dimension of attribution, by its name. */
export type DimensionKind = `dimension:${string}`

/** What callers can invent keys of: a bucket holds a number of them, and the rest under `other`. */
export const isInvented = (kind: string): boolean =>
  kind === 'model' || kind === 'reason' || kind.startsWith('dimension:')

/** The scope of all teams together, and that of no team. */
export const everyTeam = '*'
export const noTeam = ''

const longestKey = 200

/** The key for everything without a row of its own. Longer than any stored model or reason. */
export const otherKey = 'other'.padEnd(longestKey + 1, '.')

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
      // Without a provider the model name is the caller's own text.
      model: typeof details?.model === 'string' && details.provider !== null ? clipped(details.model) : '',
      gateway: clipped(who.gateway_id),
      token: clipped(who.token_id),
      reason: clipped(event.reason_code),
      provider: typeof details?.provider === 'string' ? clipped(details.provider) : clipped(cost?.provider ?? ''),
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

/** What a sum of the kind `cost` is of, in the order of its key. */
export const costDimensions = ['provider', 'model', 'token_id', 'gateway_id', 'user_id'] as const
export type CostDimension = (typeof costDimensions)[number]

const unitSeparator = '\u001f'

export interface RollupKey {
  kind: RollupKind
  key: string
}

/** The rows of a shape that an outcome counts in. A gateway may have written anything, as far as its type says. */
export function rowsFor(kind: (typeof rollupShapes)[number]['kind'], keys: OutcomeKeys): RollupKey[] {
  if (kind !== 'dimensions') return [{ kind, key: keyOf(kind, keys) }]
  if (keys.dimensions === '') return []
  const values: Readonly<Record<string, string>> = JSON.parse(keys.dimensions)
  return Object.entries(values).map(([name, key]) => ({ kind: `dimension:${name}`, key }))
}

function keyOf(kind: Exclude<RollupKind, DimensionKind>, keys: OutcomeKeys): string {
  if (kind !== 'cost') return keys[kind]
  const { provider, model, token, gateway, user } = keys
  return [provider, model, token, gateway, user].map(withoutSeparator).join(unitSeparator)
}

const withoutSeparator = (text: string): string =>
  text.includes(unitSeparator) ? text.replaceAll(unitSeparator, '') : text

export function readCostKey(key: string): Record<CostDimension, string> {
  const [provider = '', model = '', token_id = '', gateway_id = '', user_id = ''] = key.split(unitSeparator)
  return { provider, model, token_id, gateway_id, user_id }
}

/**
 * Truncation may halve a surrogate pair, and a worker's event may contain a half, which SQLite cannot store as text.
 */
const clipped = (text: string | null): string => (text ?? '').slice(0, longestKey).toWellFormed()

const amount = (value: unknown): number | null =>
  typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : null
