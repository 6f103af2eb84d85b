/**
 * What the ledger stores for a line of a worker's chain that is not a valid event. A chain cannot leave a number out:
 * refusing the line would block everything behind it in its gateway until the outbox is full. So its bytes keep their
 * place in the chain, under an event of the control plane's own that asserts nothing about them.
 */
import { timestamp } from '../../lib/clock.ts'
import type { NewId } from '../../lib/ids.ts'
import { noAttribution } from '../event.ts'
import type { Chained } from './append.ts'

/** No gateway may post this type. */
export const quarantinedType = 'fleet.event_quarantined'

export const quarantineReasons = ['event.not_valid', 'event.repeated_id'] as const
export type QuarantineReason = (typeof quarantineReasons)[number]

export const isQuarantineReason = (reason: unknown): reason is QuarantineReason =>
  quarantineReasons.some((known) => known === reason)

export function quarantined(
  { n, digest, body }: Pick<Chained, 'n' | 'digest' | 'body'>,
  options: { reason: QuarantineReason; gatewayId: string; receivedAt: number; newId: NewId },
): Chained {
  const event: Chained['event'] = {
    event_id: options.newId(),
    event_type: quarantinedType,
    request_id: null,
    timestamp: timestamp(options.receivedAt),
    verdict: 'error',
    reason_code: options.reason,
    config_version: 0,
    event_attribution: { ...noAttribution, gateway_id: options.gatewayId },
  }
  return { event, body, n, digest }
}
