/**
 * Which paths are worth trying, one circuit for each model at each provider (gateway/README.md, Paths;
 * lib/circuits.ts). An open one is passed over while another path can be tried. Nothing is refused because of it: where
 * every path is open, the first is tried.
 *
 * Callers choose the names of unlisted models, so the number of circuits is bounded.
 */
import type { Settings } from '../../config.ts'
import { NamedCircuits } from '../../lib/circuits.ts'
import type { ResolvedModel } from '../exchange.ts'

/** The part of a path that names its circuit. */
export type CircuitPath = Pick<ResolvedModel, 'upstreamModel'> & { provider: { id: string } }

export class Circuits {
  readonly #circuits: NamedCircuits

  /** `circuit_failures` 0 opens none by itself. */
  constructor(settings: Pick<Settings, 'circuit_failures' | 'circuit_open_seconds'>) {
    this.#circuits = new NamedCircuits(settings)
  }

  /** Whether the path may be tried now. The first to be told so of a half-open one is who tries it. */
  allows(path: CircuitPath, now: number): boolean {
    return this.#circuits.size === 0 || this.#circuits.allows(nameOf(path), now)
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

  /** How many paths are passed over now. */
  open(now: number): number {
    return this.#circuits.open(now)
  }
}

const nameOf = ({ provider, upstreamModel }: CircuitPath): string => `${provider.id}/${upstreamModel}`
