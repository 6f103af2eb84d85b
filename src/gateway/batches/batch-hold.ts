/**
 * What the request that makes a batch holds on limits (usage/batches/README.md): the worst case of all lines, charged
 * with its outcome. A refused request gives it back. Whoever does not know whether the provider made the batch pays for
 * it.
 */
import type { MadeBatch } from '../../usage/batches/batch-protocol.ts'
import type { ReservedAmount } from '../../usage/usage-limits.ts'

export interface BatchHold {
  readonly lines: number
  /** The most that all lines can cost, in nano-dollars; null if that is not known. */
  readonly bound: number | null
  /** The batch, once the provider has made it. */
  made: MadeBatch | null
  /** The provider has refused to make it, or was never asked. */
  isRefused: boolean
}

/** What is charged of the amounts held. A request that made no batch has used nothing. */
export const chargedByBatch = ({ isRefused }: BatchHold, held: readonly ReservedAmount[]): readonly ReservedAmount[] =>
  isRefused ? held.map(({ account }) => ({ account, amount: 0 })) : held

/** How fetch says that no connection was made, so that nothing was sent. */
const unsent: ReadonlySet<unknown> = new Set([
  ...[
    'ConnectionRefused',
    'FailedToOpenSocket',
    'ECONNREFUSED',
    'ENOTFOUND',
    'EAI_AGAIN',
    'ENETUNREACH',
    'EHOSTUNREACH',
  ],
])

export const wasNeverSent = (thrown: unknown): boolean =>
  thrown instanceof Error && 'code' in thrown && unsent.has(thrown.code)
