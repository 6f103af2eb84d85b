import { expect, test } from 'bun:test'
import { heartbeatRequestSchema, reportedTargets, type TargetHealth } from '../../protocol/wire.ts'

const health: TargetHealth = {
  provider: 'one',
  model: 'large',
  upstream_model: 'large-v2',
  calls: 5,
  errors: 1,
  error_ratio: 0.2,
  in_flight: 0,
  first_byte_p50_ms: 12.5,
  first_byte_p95_ms: null,
  circuit_open: false,
  keys: 2,
  keys_resting: 1,
  last_error: { at: '2026-01-01T00:00:00.000Z', reason: 'provider.error', status: 401 },
}
const heartbeat = {
  worker: 0,
  stream_id: '01990000-0000-7000-8000-000000000001',
  acknowledged_version: 1,
  history: 'h',
  nonce: 'n',
}

test('a heartbeat may say how targets are, up to a number of them', () => {
  const parse = (count: number) =>
    heartbeatRequestSchema.safeParse({ ...heartbeat, targets: Array.from({ length: count }, () => health) }).success
  expect([parse(0), parse(1), parse(reportedTargets), parse(reportedTargets + 1)]).toEqual([true, true, true, false])
})
