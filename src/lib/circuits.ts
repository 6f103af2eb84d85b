/**
 * Circuit breakers by name. Closed: in use; consecutive failures are counted, and a success resets the count. Open,
 * after a number of failures: not in use. Half-open, when the open time is over: one use is let through; its success
 * closes the circuit, its failure opens it again. A target that asks for a pause gets it in the same way, and is then
 * used by all again.
 *
 * Only circuits with failures are kept, up to a limit.
 */
import { LRUCache } from 'lru-cache'

const circuitsInMemory = 10_000
/** The longest pause that a target can ask for: its reason may end sooner. */
const longestRestMilliseconds = 60_000

interface Circuit {
  failures: number
  /** Monotonic milliseconds until which it is open after failures; 0 while it is closed. */
  openUntil: number
  /** The same, for a pause that the target asked for. */
  restUntil: number
}

interface CircuitSettings {
  /** Consecutive failures; 0 never opens a circuit. */
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

  /** Whether it may be used now. The first caller that gets true for a half-open circuit makes the trial. */
  allows(name: string, now: number): boolean {
    const circuit = this.#circuits.get(name)
    if (circuit === undefined) return true
    if (now < circuit.restUntil || now < circuit.openUntil) return false
    if (circuit.openUntil === 0) return true
    circuit.openUntil = now + this.#openMilliseconds
    return true
  }

  /** Whether it is open now; unlike `allows` this starts no trial. */
  isOpen(name: string, now: number): boolean {
    const circuit = this.#circuits.peek(name)
    return circuit !== undefined && (now < circuit.openUntil || now < circuit.restUntil)
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

  /** Opens it for this long. */
  rest(name: string, now: number, milliseconds: number): void {
    const circuit = this.#of(name)
    circuit.restUntil = Math.max(circuit.restUntil, now + Math.min(milliseconds, longestRestMilliseconds))
  }

  /** How many circuits are open now. */
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
