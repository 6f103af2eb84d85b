/**
 * Circuits by name. Closed: it is used; failures in a row are counted, an answer forgets them. Open, after so many in a
 * row: it is not used. Half-open, when that time is over: one use tries it; its answer closes the circuit, its failure
 * opens it again. What asks for time gets it in the same way, and is then used by all again.
 *
 * Only circuits with failures are kept, and so many of them.
 */
import { LRUCache } from 'lru-cache'

const circuitsInMemory = 10_000
/** However long it is asked for: what was said may not hold that long. */
const longestRestMilliseconds = 60_000

interface Circuit {
  failures: number
  /** Monotonic milliseconds until which it is not used: it failed; 0 while it is closed. */
  openUntil: number
  /** The same: it was asked for. */
  restUntil: number
}

interface CircuitSettings {
  /** Failures in a row; 0 opens none. */
  circuit_failures: number
  circuit_open_seconds: number
}

export class NamedCircuits {
  readonly #circuits = new LRUCache<string, Circuit>({ max: circuitsInMemory })
  readonly #failures: number
  readonly #openMilliseconds: number

  constructor({ circuit_failures, circuit_open_seconds }: CircuitSettings) {
    this.#failures = circuit_failures
    this.#openMilliseconds = 1000 * circuit_open_seconds
  }

  get size(): number {
    return this.#circuits.size
  }

  /** Whether it may be used now. The first to be told so of a half-open one is who tries it. */
  allows(name: string, now: number): boolean {
    const circuit = this.#circuits.get(name)
    if (circuit === undefined) return true
    if (now < circuit.restUntil || now < circuit.openUntil) return false
    if (circuit.openUntil === 0) return true
    circuit.openUntil = now + this.#openMilliseconds
    return true
  }

  answered(name: string): void {
    this.#circuits.delete(name)
  }

  failed(name: string, now: number): void {
    if (this.#failures === 0) return
    const circuit = this.#of(name)
    circuit.failures += 1
    if (circuit.failures >= this.#failures) circuit.openUntil = now + this.#openMilliseconds
  }

  /** It is not to be used for this long. */
  rest(name: string, now: number, milliseconds: number): void {
    const circuit = this.#of(name)
    circuit.restUntil = Math.max(circuit.restUntil, now + Math.min(milliseconds, longestRestMilliseconds))
  }

  /** How many are not used now. */
  open(now: number): number {
    let open = 0
    for (const { openUntil, restUntil } of this.#circuits.values()) if (now < openUntil || now < restUntil) open += 1
    return open
  }

  #of(name: string): Circuit {
    let circuit = this.#circuits.get(name)
    if (circuit === undefined) {
      circuit = { failures: 0, openUntil: 0, restUntil: 0 }
      this.#circuits.set(name, circuit)
    }
    return circuit
  }
}
