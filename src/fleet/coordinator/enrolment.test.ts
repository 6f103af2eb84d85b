import { afterAll, beforeAll, expect, test } from 'bun:test'
import { eventually } from '../../../test/support/eventually.ts'
import { recordedEvents } from '../../events/testing/recorded.ts'
import { newId } from '../../lib/ids.ts'
import { controlClient } from '../agent/control-client.ts'
import { TemporaryFleet } from '../testing/temporary-fleet.ts'
import { isWithin, parseRange } from './enrolment.ts'

let fleet: TemporaryFleet

beforeAll(async () => {
  fleet = await TemporaryFleet.start()
})
afterAll(async () => {
  await fleet.remove()
})

const start = (instanceId: string): Promise<string> =>
  controlClient(fleet.url, fetch)
    .bootstrap(fleet.runtimeToken, { instance_id: instanceId, version: '0.2.0', workers: 1 })
    .then(
      () => 'started',
      (error: Error) => error.message,
    )

const bound = (most: number | null, addresses: readonly string[] | null): Promise<void> =>
  fleet.ledger.write([
    {
      sql: 'insert or replace into gateway_bounds (gateway_id, max_instances, addresses) values (?, ?, ?)',
      args: [fleet.gatewayId, most, addresses === null ? null : JSON.stringify(addresses)],
    },
  ])

test('refuses instances above max_instances, and lets a known instance start again', async () => {
  await bound(2, null)
  const [one, two, three] = [newId(), newId(), newId()]
  expect(await Promise.all([start(one), start(two)])).toEqual(['started', 'started'])
  expect(await start(three)).toContain('403 access_denied')
  expect(await start(one)).toBe('started')
  await fleet.ledger.write([{ sql: 'delete from runtime_sessions where instance_id = ?', args: [two] }])
  expect(await start(three)).toBe('started')
})

test("refuses an instance from an address outside the gateway's ranges", async () => {
  await bound(null, ['10.0.0.0/8'])
  expect(await start(newId())).toContain('403 access_denied')
  const worker = await fleet.worker('refused')
  await eventually(() => worker.ready().reason?.includes('403 access_denied: ') ?? false)
  await worker.drain()
  await bound(null, ['10.0.0.0/8', '127.0.0.0/8'])
  expect(await start(newId())).toBe('started')
})

test('records the first registration of an instance as an event, and later ones not', async () => {
  await bound(null, null)
  const enrolled = async () => (await recordedEvents(fleet.ledger, 'fleet.enrolled')).length
  const before = await enrolled()
  const first = await fleet.worker('enrolling')
  await eventually(() => first.ready().ok)
  expect(await enrolled()).toBe(before + 1)
  await first.drain()
  const again = await fleet.worker('enrolling')
  await eventually(() => again.ready().ok)
  expect(await enrolled()).toBe(before + 1)
})

test('a worker that stops cleanly is not among those that may serve', async () => {
  const worker = await fleet.worker('leaving')
  await eventually(() => worker.ready().ok)
  const rows = async () =>
    (await fleet.ledger.read('select 1 from workers where left_at is null and last_heartbeat_at > 0')).length
  const before = await rows()
  await worker.drain()
  expect(await rows()).toBe(before - 1)
})

test('address ranges match IPv4, IPv6 and IPv4 mapped into IPv6', () => {
  const ranges = ['10.1.0.0/16', '192.0.2.7', '2001:db8::/32']
  const inside = ['10.1.255.255', '192.0.2.7', '::ffff:10.1.2.3', '2001:db8:1::1']
  const outside = ['10.2.0.0', '192.0.2.8', '2001:db9::1', 'unknown', '']
  expect(inside.map((address) => isWithin(address, ranges))).toEqual([true, true, true, true])
  expect(outside.map((address) => isWithin(address, ranges))).toEqual([false, false, false, false, false])
  const wrong = ['10.0.0.0/33', '10.0.0.0/a', '10.0.0.0/8/8', 'example.com', '::/129', '']
  expect(wrong.map(parseRange)).toEqual(wrong.map(() => null))
})

test('a worker that cannot register says why until it can', async () => {
  let expired = true
  const worker = await fleet.worker('a', {
    fetch: async (url, request) => {
      if (expired) throw Object.assign(new Error('no'), { code: 'CERT_HAS_EXPIRED' })
      return await fetch(url, request)
    },
  })
  const why = 'The control plane cannot be reached: its certificate is not accepted (CERT_HAS_EXPIRED)'
  await eventually(() => worker.ready().reason?.endsWith(why) ?? false)
  expired = false
  await eventually(() => worker.ready().ok)
})
