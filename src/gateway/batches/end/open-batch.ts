/** A batch as it is followed, and whether it is at its end. */
import type { OpenBatch } from '../../../usage/batches/batch-protocol.ts'
import type { Gateway } from '../../context.ts'
import { type Exchange, required } from '../../exchange.ts'
import type { BatchOrigin } from '../file-place.ts'

const finalStatuses: ReadonlySet<unknown> = new Set(['completed', 'failed', 'expired', 'cancelled'])

export const isFinal = (status: unknown): boolean => finalStatuses.has(status)

/** A batch as a caller's id describes it. When it was made is not known, and does not matter: it is looked at once. */
export function openBatchOf(
  { model, spendOwner }: Exchange,
  { clock }: Pick<Gateway, 'clock'>,
  { family, lines, bound, hold, batch }: BatchOrigin,
): OpenBatch {
  const { provider, id, upstreamModel } = required(model)
  return {
    ...{ hold, id: batch, provider_id: provider.id, provider: provider.name, model: id, upstream_model: upstreamModel },
    ...{ family, lines, bound, spend_owner: spendOwner, created_at: clock.now() },
  }
}
