/**
 * The order in which the targets of one model are tried. Targets come in the order of their tiers; within a tier the
 * model's strategy decides.
 *
 * - `priority`: the order of the record.
 * - `weighted`: each target comes first as often as its weight says; a target of weight 0 comes last.
 * - `least_busy`: of two targets at random, the one with fewer calls in flight from this process.
 * - `lowest_latency`: of two targets at random, the one whose median time to the first byte is lower. Two, because all
 *   processes would run to the one best. A target that was not used for a while is measured again by one request.
 * - `lowest_cost`: by the price of a million tokens in and out; an unknown price comes last.
 *
 * A session has an order of its own in all but the fixed orders, by weighted rendezvous hashing: each target gets a
 * number from a hash of session and target, and the lowest comes first. Every process computes the same order from the
 * session alone, and a target that is added or taken away moves only the sessions that it serves.
 */
import type { TargetStrategy } from '../../../providers/catalog/target-strategy.ts'
import type { TargetState } from './target-state.ts'

/** A target that may be chosen, with what decides. */
export interface Candidate<Path> {
  readonly path: Path
  readonly tier: number
  readonly weight: number
  readonly state: TargetState
  /** It is passed over while another can be used: it comes after the others of its tier. */
  readonly isOut: boolean
  /** Its place in the random or the session's order of its tier; the lowest comes first. */
  place: number
}

/** How long a target is not used before it is measured again. */
const measureAgainMilliseconds = 30_000

/**
 * Orders candidates, which come in the order of their tiers, in place. `session` is the hash of a session, or null;
 * `random` gives numbers from 0 to 1.
 */
export function orderTargets<Path>(
  candidates: Candidate<Path>[],
  strategy: TargetStrategy,
  { session, now, random }: { session: number | null; now: number; random: () => number },
): void {
  if (strategy === 'priority') return
  for (const each of candidates) each.place = placeOf(each, strategy, session, random)
  candidates.sort(
    (one, other) => one.tier - other.tier || Number(one.isOut) - Number(other.isOut) || one.place - other.place,
  )
  if (session !== null || (strategy !== 'least_busy' && strategy !== 'lowest_latency')) return
  for (let index = 1; index < candidates.length; index++) {
    const [first, second] = [candidates[index - 1], candidates[index]]
    const begins = index === 1 || candidates[index - 2]?.tier !== first?.tier
    if (!begins || first === undefined || second === undefined || first.tier !== second.tier || second.isOut) continue
    if (!isBetter(second.state, first.state, strategy, now)) continue
    candidates[index - 1] = second
    candidates[index] = first
  }
}

function placeOf<Path>(
  { weight, state }: Candidate<Path>,
  strategy: TargetStrategy,
  session: number | null,
  random: () => number,
): number {
  if (strategy === 'lowest_cost') return state.cost
  const uniform = session === null ? 1 - random() : mixed(session, state.seed)
  // The least of exponential numbers with these rates is each target's as often as its weight says (Efraimidis 2006).
  return -Math.log(uniform) / (strategy === 'weighted' ? weight : 1)
}

function isBetter(one: TargetState, other: TargetState, strategy: TargetStrategy, now: number): boolean {
  if (strategy === 'least_busy') return one.inFlight < other.inFlight
  return latencyOf(one, now) < latencyOf(other, now)
}

/** Zero for a target that must be measured; it counts as slow while its first answers are awaited. */
function latencyOf({ p50, lastUsed, inFlight }: TargetState, now: number): number {
  if (now - lastUsed > measureAgainMilliseconds && inFlight === 0) return 0
  if (!Number.isNaN(p50)) return p50
  return inFlight > 0 ? Number.MAX_VALUE : 0
}

/** A number above 0 and up to 1 from two hashes: the finalizer of MurmurHash3. */
function mixed(session: number, seed: number): number {
  let hash = session ^ seed
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (((hash ^ (hash >>> 16)) >>> 0) + 1) / 2 ** 32
}

/** The hash of a session or of the name of a target: the same on every host. */
export const hashOf = (text: string): number => Bun.hash.xxHash32(text)
