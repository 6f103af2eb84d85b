/**
 * Adds equal outcomes up before they are added to the sums (rollup.ts): outcomes of one minute with the same verdict
 * and keys are in the same rows of every kind and step, so the dozens of rows are touched once for all of them.
 */
import { bucketOf, countBuckets, type LatencySketch } from './latency-sketch.ts'
import { type CountedOutcome, minutesKeptMilliseconds, type OutcomeKeys, stepMilliseconds } from './rollup.ts'

/** What rows of the sums, and tallies, add up. Cost in nano-dollars. */
interface Amounts {
  requests: number
  inputTokens: number
  outputTokens: number
  cost: number
}

/** The values that a row of the sums counts. */
export interface Counts extends Amounts {
  latency: LatencySketch
  firstToken: LatencySketch
}

export interface Tally extends Amounts, Pick<CountedOutcome, 'verdict' | 'scope' | 'keys'> {
  /** When the minute begins, in milliseconds since the epoch. */
  at: number
  /** Whether they arrived while minutes of their time were kept. */
  inMinutes: boolean
  /** The bucket of each duration. For few of them a list is faster than a sketch. */
  latencies: number[]
  firstTokens: number[]
}

const nothing = (): Amounts => ({ requests: 0, inputTokens: 0, outputTokens: 0, cost: 0 })

export const noCounts = (): Counts => ({ ...nothing(), latency: {}, firstToken: {} })

const names = [
  'all',
  'model',
  'gateway',
  'reason',
  'token',
  'provider',
  'user',
  'dimensions',
] as const satisfies readonly (keyof OutcomeKeys)[]

/** The tallies of outcomes that were received together, in the order of first appearance. */
export function tally(outcomes: readonly CountedOutcome[], receivedAt: number): Tally[] {
  const tallies = new Map<string, Tally>()
  const minutesFrom = receivedAt - minutesKeptMilliseconds
  for (const outcome of outcomes) addOutcome(tallies, outcome, outcome.at >= minutesFrom)
  return [...tallies.values()]
}

/** Adds an outcome to the tally with equal keys. */
export function addOutcome(tallies: Map<string, Tally>, outcome: CountedOutcome, inMinutes: boolean): void {
  const { verdict, scope, keys } = outcome
  const at = outcome.at - (outcome.at % stepMilliseconds.minute)
  // Some sums count only what used something, so a tally has outcomes of one sort.
  const used = outcome.inputTokens + outcome.outputTokens + outcome.cost > 0
  let name = `${at}\0${inMinutes}\0${used}\0${verdict}\0${scope}`
  for (const each of names) name += `\0${keys[each]}`
  let alike = tallies.get(name)
  if (alike === undefined) {
    alike = { at, inMinutes, verdict, scope, keys, ...nothing(), latencies: [], firstTokens: [] }
    tallies.set(name, alike)
  }
  alike.requests += 1
  alike.inputTokens += outcome.inputTokens
  alike.outputTokens += outcome.outputTokens
  alike.cost += outcome.cost
  if (outcome.latency !== null) alike.latencies.push(bucketOf(outcome.latency))
  if (outcome.firstToken !== null) alike.firstTokens.push(bucketOf(outcome.firstToken))
}

/** Adds a tally to the values of a row; `sketched` if the row has durations. */
export function addCounts(row: Counts, alike: Tally, sketched: boolean): void {
  row.requests += alike.requests
  row.inputTokens += alike.inputTokens
  row.outputTokens += alike.outputTokens
  row.cost += alike.cost
  if (!sketched) return
  countBuckets(row.latency, alike.latencies)
  countBuckets(row.firstToken, alike.firstTokens)
}
