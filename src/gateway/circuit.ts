/**
 * Which paths are worth trying, one circuit for each model at each provider (contract section 6, Paths):
 *
 * - closed: it is tried. Failed connections, timeouts and 5xx in a row are counted; an answer forgets them.
 * - open, after so many in a row: it is passed over while another path can be tried. Nothing is refused because of it:
 *   where every path is open, the first is tried.
 * - half-open, when its time is over: one request tries it, the others go on passing it over; its answer closes the
 *   circuit, its failure opens it again.
 *
 * A provider that asks for time by Retry-After gets it in the same way, and is then tried by all again.
 *
 * Only circuits with failures are kept. Callers choose the names of unlisted models, so their number is bounded.
 */
import { LRUCache } from 'lru-cache'
import type { Settings } from '../config.ts'
import type { ResolvedModel } from './exchange.ts'

const circuitsInMemory = 10_000
/** However long a provider asks for: what it said may not hold that long. */
const longestRestMilliseconds = 60_000

interface Circuit {
  failures: number
  /** Monotonic milliseconds until which the path is passed over: it failed; 0 while it is closed. */
  openUntil: number
  /** The same: its provider asked for it. */
  restUntil: number
}

/** The part of a path that names its circuit. */
export type CircuitPath = Pick<ResolvedModel, 'upstreamModel'> & { provider: { id: string } }

export class Circuits {
  readonly #circuits = new LRUCache<string, Circuit>({ max: circuitsInMemory })
  readonly #failures: number
  readonly #openMilliseconds: number

  /** `circuit_failures` 0 opens none by itself. */
  constructor(settings: Pick<Settings, 'circuit_failures' | 'circuit_open_seconds'>) {
    this.#failures = settings.circuit_failures
    this.#openMilliseconds = 1000 * settings.circuit_open_seconds
  }

  /** Whether the path may be tried now. The first to be told so of a half-open one is who tries it. */
  allows(path: CircuitPath, now: number): boolean {
    if (this.#circuits.size === 0) return true
    const circuit = this.#circuits.get(nameOf(path))
    if (circuit === undefined) return true
    if (now < circuit.restUntil || now < circuit.openUntil) return false
    if (circuit.openUntil === 0) return true
    circuit.openUntil = now + this.#openMilliseconds
    return true
  }

  answered(path: CircuitPath): void {
    if (this.#circuits.size > 0) this.#circuits.delete(nameOf(path))
  }

  failed(path: CircuitPath, now: number): void {
    if (this.#failures === 0) return
    const circuit = this.#of(path)
    circuit.failures += 1
    if (circuit.failures >= this.#failures) circuit.openUntil = now + this.#openMilliseconds
  }

  /** The provider asks not to be called for this long. */
  rest(path: CircuitPath, now: number, milliseconds: number): void {
    const circuit = this.#of(path)
    circuit.restUntil = Math.max(circuit.restUntil, now + Math.min(milliseconds, longestRestMilliseconds))
  }

  /** How many paths are passed over now. */
  open(now: number): number {
    let open = 0
    for (const { openUntil, restUntil } of this.#circuits.values()) if (now < openUntil || now < restUntil) open += 1
    return open
  }

  #of(path: CircuitPath): Circuit {
    const name = nameOf(path)
    let circuit = this.#circuits.get(name)
    if (circuit === undefined) {
      circuit = { failures: 0, openUntil: 0, restUntil: 0 }
      this.#circuits.set(name, circuit)
    }
    return circuit
  }
}

const nameOf = ({ provider, upstreamModel }: CircuitPath): string => `${provider.id}/${upstreamModel}`
