/**
 * Outcomes that count alike, added up before they are added to the sums (rollup.ts): those of one minute with the same
 * verdict and keys are in the same row of every kind and step, so the dozens of rows are touched once for all of them.
 */
import { addDuration, type LatencySketch, mergeSketch } from './latency-sketch.ts'
import { type CountedOutcome, minutesKeptMilliseconds, rollupShapes, stepMilliseconds } from './rollup.ts'

/** What rows of the sums and tallies add up. Cost in nano-dollars. */
export interface Counts {
  requests: number
  inputTokens: number
  outputTokens: number
  cost: number
  latency: LatencySketch
  firstToken: LatencySketch
}

export interface Tally extends Counts, Pick<CountedOutcome, 'verdict' | 'scope' | 'keys'> {
  /** When the minute begins, in milliseconds since the epoch. */
  at: number
  /** Whether they came in while minutes of their time were kept. */
  inMinutes: boolean
}

export const noCounts = (): Counts => ({
  ...{ requests: 0, inputTokens: 0, outputTokens: 0, cost: 0 },
  ...{ latency: {}, firstToken: {} },
})

const kinds = rollupShapes.map(({ kind }) => kind)

/** The tallies of outcomes that were received together, in the order in which the first of each came. */
export function tally(outcomes: readonly CountedOutcome[], receivedAt: number): Tally[] {
  const tallies = new Map<string, Tally>()
  for (const outcome of outcomes) {
    const { verdict, scope, keys } = outcome
    const at = outcome.at - (outcome.at % stepMilliseconds.minute)
    const inMinutes = outcome.at >= receivedAt - minutesKeptMilliseconds
    let name = `${at}\0${inMinutes}\0${verdict}\0${scope}`
    for (const kind of kinds) name += `\0${keys[kind]}`
    let alike = tallies.get(name)
    if (alike === undefined) {
      alike = { at, inMinutes, verdict, scope, keys, ...noCounts() }
      tallies.set(name, alike)
    }
    alike.requests += 1
    alike.inputTokens += outcome.inputTokens
    alike.outputTokens += outcome.outputTokens
    alike.cost += outcome.cost
    if (outcome.latency !== null) addDuration(alike.latency, outcome.latency)
    if (outcome.firstToken !== null) addDuration(alike.firstToken, outcome.firstToken)
  }
  return [...tallies.values()]
}

/** Adds counts to others; `sketched` where durations are among what is counted. */
export function addCounts(into: Counts, from: Counts, sketched: boolean): void {
  into.requests += from.requests
  into.inputTokens += from.inputTokens
  into.outputTokens += from.outputTokens
  into.cost += from.cost
  if (!sketched) return
  mergeSketch(into.latency, from.latency)
  mergeSketch(into.firstToken, from.firstToken)
}
