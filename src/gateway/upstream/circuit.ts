/**
 * One circuit for each model at each provider (gateway/README.md, Paths; lib/circuits.ts). A path with an open circuit
 * is skipped while another can be tried. Nothing is refused because of a circuit: when all are open, the first path is
 * tried.
 *
 * Callers choose the names of unlisted models, so the number of circuits is bounded.
 */
import type { Settings } from '../../config.ts'
import { NamedCircuits } from '../../lib/circuits.ts'
import type { ResolvedModel } from '../exchange.ts'

/** The part of a path that identifies its circuit. */
export type CircuitPath = Pick<ResolvedModel, 'upstreamModel'> & { provider: { id: string } }

export class Circuits {
  readonly #circuits: NamedCircuits

  /** With `circuit_failures` 0 no circuit opens by failures. */
  constructor(settings: Pick<Settings, 'circuit_failures' | 'circuit_open_seconds'>) {
    this.#circuits = new NamedCircuits(settings)
  }

  /** Whether the path may be tried now. Of a half-open circuit the first caller gets the try. */
  allows(path: CircuitPath, now: number): boolean {
    return this.#circuits.size === 0 || this.#circuits.allows(nameOf(path), now)
  }

  /** Whether it is open now; unlike `allows` this starts no trial. */
  isOpen(path: CircuitPath, now: number): boolean {
    return this.#circuits.size > 0 && this.#circuits.isOpen(nameOf(path), now)
  }

  answered(path: CircuitPath): void {
    if (this.#circuits.size > 0) this.#circuits.answered(nameOf(path))
  }

  failed(path: CircuitPath, now: number): void {
    this.#circuits.failed(nameOf(path), now)
  }

  /** The provider asks not to be called for this long. */
  rest(path: CircuitPath, now: number, milliseconds: number): void {
    this.#circuits.rest(nameOf(path), now, milliseconds)
  }

  /** The number of paths that are skipped now. */
  open(now: number): number {
    return this.#circuits.open(now)
  }
}

const nameOf = ({ provider, upstreamModel }: CircuitPath): string => `${provider.id}/${upstreamModel}`
