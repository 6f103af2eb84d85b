/**
 * What the ledger stores for a line of a worker's chain that is not a valid record. A chain cannot leave a number out:
 * refusing the line would block everything behind it in its gateway until the outbox is full. So its bytes keep their
 * place in the chain, and readers see an event of the control plane's own that asserts nothing about them.
 */
import { z } from 'zod'
import { timestamp } from '../../lib/clock.ts'
import { type Event, noAttribution } from '../event.ts'

/** No gateway may post this type. */
export const quarantinedType = 'fleet.event_quarantined'

const quarantineReasons = ['event.not_valid', 'event.repeated_id'] as const
export type QuarantineReason = (typeof quarantineReasons)[number]

/** What the log says of a line that it keeps without understanding it. */
export const quarantineSchema = z.strictObject({
  reason: z.enum(quarantineReasons),
  event_id: z.uuid(),
  chain: z.string(),
  seq: z.number().int().min(1),
  bytes: z.number().int().min(0),
})
export type Quarantine = z.infer<typeof quarantineSchema>

/** The event that readers see in its place. */
export const quarantinedEvent = ({ reason, event_id, chain, seq, bytes }: Quarantine, at: number): Event => ({
  event_id,
  event_type: quarantinedType,
  request_id: null,
  timestamp: timestamp(at),
  verdict: 'error',
  reason_code: reason,
  config_version: 0,
  event_attribution: { ...noAttribution, gateway_id: chain.split('/')[0] ?? null },
  details: { chain, seq, bytes },
})

/** The event that readers see in the place of records that cannot be read. `gatehouse events verify` says more. */
export const damagedEvent = (at: number, details: { first_position: number; records: number }): Event => ({
  event_id: `00000000-0000-7000-8000-${details.first_position.toString(16).padStart(12, '0')}`,
  event_type: quarantinedType,
  request_id: null,
  timestamp: timestamp(at),
  verdict: 'error',
  reason_code: 'event.damaged',
  config_version: 0,
  event_attribution: noAttribution,
  details,
})
