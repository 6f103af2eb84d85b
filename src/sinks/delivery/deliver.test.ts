import { afterEach, beforeEach, expect, test } from 'bun:test'
import { recordedEvents } from '../../events/testing/recorded.ts'
import { streamArchive } from '../archive/archive.ts'
import { verifyArchive } from '../archive/verify-archive.ts'
import { isProofLine } from '../formats/proof.ts'
import { SinkFixture } from '../testing/sink-fixture.ts'

const day = 86_400_000
let sinks: SinkFixture
beforeEach(async () => {
  sinks = await SinkFixture.start()
})
afterEach(() => sinks.remove())

const idOf = (line: string): string => JSON.parse(line).event_id
const records = () => sinks.lines.filter((line) => !isProofLine(line))
const isUnique = (ids: readonly string[]) => new Set(ids).size === ids.length

/** The answer of a receiver that never gives one. */
const untilAborted = (signal: AbortSignal | null | undefined) =>
  new Promise<Response>((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason)))

/** What a verification of everything that was received says. */
async function verified(written = sinks.lines) {
  const lines = []
  const archive = streamArchive(async function* () {
    yield* written
  })
  const asked = { archive, pinned: [], witnesses: [], keys: null, reaches: null }
  for await (const line of verifyArchive(asked)) lines.push(line)
  return lines
}

test('delivers every record once, in the order of each chain, with a proof that holds', async () => {
  await sinks.proof.shipEvents(1, 250)
  await sinks.proof.shipEvents(2, 3)
  await sinks.proof.record(4)
  await sinks.proof.sign()
  const id = await sinks.add({ kind: 'http' })
  await sinks.deliver()
  await sinks.proof.shipEvents(1, 5)
  await sinks.deliver()
  expect(records()).toHaveLength(262)
  expect(isUnique(records().map(idOf))).toBe(true)
  expect(await sinks.delivery(id)).toMatchObject({ position: 263, delivered: 262, failures: 0, owner: null })
  const report = await verified()
  expect(report.at(-1)).toMatchObject({ kind: 'summary', chains: 3, records: 262, findings: 0, not_covered: 5 })
})

test('sends the same parcel again after a process has died before it could move the cursor', async () => {
  await sinks.proof.shipEvents(1, 30)
  const id = await sinks.add({ kind: 'http' })
  const dying = sinks.runner('one', {
    fetch: async (url, init) => {
      await sinks.fetch(url, init)
      return await untilAborted(init.signal)
    },
  })
  await dying.round()
  sinks.proof.now += 61_000
  await dying.round()
  while (sinks.received.length === 0) await Bun.sleep(5)
  await sinks.proof.shipEvents(1, 10)
  // The process is started anew, with the same data directory.
  await sinks.deliver(sinks.runner('one'))
  const [first, again, rest] = sinks.received
  expect(again?.text).toBe(first?.text ?? '')
  expect(rest?.text).not.toContain(idOf(first?.text.split('\n')[0] ?? ''))
  expect(new Set(records().map(idOf)).size).toBe(40)
  expect((await sinks.delivery(id)).position).toBe(41)
  expect((await verified()).at(-1)).toMatchObject({ records: 40, findings: 0 })
})

test('several control planes share the work, and no record is delivered twice', async () => {
  await sinks.proof.shipEvents(1, 40)
  await sinks.add({ kind: 'http', name: 'first' })
  await sinks.add({ kind: 'http', name: 'second' })
  sinks.answer = async () => {
    await Bun.sleep(5)
    return new Response()
  }
  const runners = ['one', 'two', 'three'].map((host) => sinks.runner(host))
  for (let round = 0; round < 6; round += 1) {
    await Promise.all(runners.map((runner) => runner.round()))
    await Promise.all(runners.map((runner) => runner.settled()))
    await sinks.proof.shipEvents(1, 5)
    sinks.proof.now += 2000
  }
  await sinks.deliver(runners[2])
  const ids = records().map(idOf)
  expect(ids).toHaveLength(140)
  expect(new Set(ids).size).toBe(70)
})

test('another control plane takes over when the lease of a dead one is over, and not before', async () => {
  await sinks.proof.shipEvents(1, 3)
  await sinks.add({ kind: 'http' })
  const dead = sinks.runner('dead', { fetch: (_url, init) => untilAborted(init.signal) })
  await dead.round()
  sinks.proof.now += 2000
  await dead.round()
  await Bun.sleep(20)
  const other = sinks.runner('other')
  await other.round()
  sinks.proof.now += 60_000
  await other.round()
  await other.settled()
  expect(sinks.received).toHaveLength(0)
  sinks.proof.now += 40_000
  await other.round()
  await other.settled()
  expect(records()).toHaveLength(3)
})

test('a control plane whose clock is a day ahead takes no lease from another', async () => {
  await sinks.proof.shipEvents(1, 3)
  const id = await sinks.add({ kind: 'http' })
  const until = sinks.proof.now + 60_000
  await sinks.proof.run(`update sink_deliveries set owner = 'other:1', leased_until = ${until} where sink_id = '${id}'`)
  const clock = { now: () => sinks.proof.now + day, monotonic: () => sinks.proof.now }
  const ahead = sinks.runner('ahead', { clock })
  await ahead.round()
  sinks.proof.now += 2000
  await ahead.round()
  await ahead.settled()
  expect(sinks.received).toHaveLength(0)
})

test('a lease that ends later than any can, of a clock that was set back, is over', async () => {
  await sinks.proof.shipEvents(1, 3)
  const id = await sinks.add({ kind: 'http' })
  const until = sinks.proof.now + day
  await sinks.proof.run(`update sink_deliveries set owner = 'gone:1', leased_until = ${until} where sink_id = '${id}'`)
  await sinks.deliver()
  expect(records()).toHaveLength(3)
})

test('a sink that was down for a day catches up; its failures are told once, and its recovery', async () => {
  const id = await sinks.add({ kind: 'http' })
  await sinks.proof.shipEvents(1, 20)
  sinks.answer = () => new Response('try later', { status: 503 })
  await sinks.deliver(sinks.runner(), 12)
  const down = await sinks.delivery(id)
  expect(down).toMatchObject({ position: 1, told: 1, error: 'The receiver answered 503: try later' })
  expect(down.failures).toBeGreaterThan(3)
  expect(down.retryAt - sinks.proof.now).toBeLessThanOrEqual(300_000)
  sinks.proof.now += day
  sinks.answer = () => new Response()
  await sinks.deliver(sinks.runner('two'), 6)
  expect(await sinks.delivery(id)).toMatchObject({ failures: 0, error: null, told: 0 })
  const { ledger } = sinks.proof.store
  expect(await recordedEvents(ledger, 'sink.failing')).toHaveLength(1)
  expect(await recordedEvents(ledger, 'sink.recovered')).toHaveLength(1)
  expect((await verified()).at(-1)).toMatchObject({ findings: 0 })
})

test('waits as long as the receiver asks', async () => {
  const id = await sinks.add({ kind: 'http' })
  await sinks.proof.shipEvents(1, 1)
  sinks.answer = () => new Response(null, { status: 429, headers: { 'retry-after': '1800' } })
  await sinks.deliver(sinks.runner(), 2)
  const { retryAt } = await sinks.delivery(id)
  expect(retryAt - sinks.proof.now).toBeGreaterThan(1_700_000)
})

test('passes over a message that the receiver refuses, names it, and delivers all others', async () => {
  const bad = sinks.proof.gatewayEvent(1, { reason_code: 'poison' })
  await sinks.proof.shipEvents(1, 40)
  await sinks.proof.ship(1, [JSON.stringify(bad)])
  await sinks.proof.shipEvents(1, 40)
  const id = await sinks.add({ kind: 'http' })
  sinks.answer = ({ text }) => new Response('no', { status: text.includes('poison') ? 400 : 200 })
  await sinks.deliver()
  const ids = new Set(records().map(idOf))
  expect(ids.has(bad.event_id)).toBe(false)
  expect(await sinks.delivery(id)).toMatchObject({ refused: 1, failures: 0 })
  const [told, more] = await recordedEvents(sinks.proof.store.ledger, 'sink.record_refused')
  expect(more).toBeUndefined()
  expect(told?.details).toMatchObject({ event_id: bad.event_id, position: 41, chain: sinks.proof.worker(1) })
  expect((await verified()).at(-1)).toMatchObject({ findings: 0, records: 82 })
})

test('passes over nothing while the receiver refuses a test event too', async () => {
  const id = await sinks.add({ kind: 'http' })
  await sinks.proof.shipEvents(1, 5)
  sinks.answer = () => new Response('wrong path', { status: 400 })
  await sinks.deliver()
  expect(await sinks.delivery(id)).toMatchObject({
    position: 1,
    refused: 0,
    error: 'The receiver answered 400: wrong path',
  })
})

test('sends what the filter lets pass, and proves what it left out', async () => {
  const denied = sinks.proof.gatewayEvent(1, { verdict: 'deny' })
  await sinks.proof.shipEvents(1, 20)
  await sinks.proof.ship(1, [JSON.stringify(denied)])
  await sinks.proof.shipEvents(1, 20)
  await sinks.add({ kind: 'http', filter: 'event.verdict != "allow"' })
  await sinks.deliver()
  expect(records().map(idOf)).toEqual([denied.event_id])
  expect((await verified()).at(-1)).toMatchObject({ findings: 0, records: 41, events: 1 })
})

test('retention waits for a sink, for so many days as the setting says, and then says what the sink lost', async () => {
  const id = await sinks.add({ kind: 'http' })
  await sinks.proof.shipEvents(1, 10)
  await sinks.proof.sign()
  const heldFrom = async () => (await sinks.delivery(id)).position
  sinks.proof.now += 91 * day
  expect(await sinks.proof.retain({ heldFrom })).toEqual({ removed: 0, finished: true })
  sinks.proof.now += 7 * day
  await sinks.proof.shipEvents(1, 2)
  expect(await sinks.proof.retain({ heldFrom })).toEqual({ removed: 10, finished: true })
  await sinks.deliver()
  expect(await sinks.delivery(id)).toMatchObject({ lost: 10 })
  const [told] = await recordedEvents(sinks.proof.store.ledger, 'sink.records_lost')
  expect(told?.details).toMatchObject({ sink_id: id, first_position: 1, records: 10 })
  expect(records().length).toBe(3)
})

test('a sink that is disabled or deleted while it catches up gets nothing more', async () => {
  const id = await sinks.add({ kind: 'http' })
  await sinks.proof.shipEvents(1, 200)
  const { ledger } = sinks.proof.store
  await ledger.write([{ sql: 'update sinks set enabled = 0 where id = ?', args: [id] }])
  await sinks.deliver()
  expect(sinks.received).toHaveLength(0)
})

test('credentials that the master key does not open are a failure of the sink, with its pauses', async () => {
  const id = await sinks.add({ kind: 'http', credentials: { token: 'abc' } })
  await sinks.proof.shipEvents(1, 3)
  await sinks.proof.run("update secrets set sealed = 'v1.AAAA.AAAA'")
  await sinks.deliver(sinks.runner(), 3)
  expect(await sinks.delivery(id)).toMatchObject({ position: 1, owner: null })
  expect((await sinks.delivery(id)).failures).toBeGreaterThan(0)
})

test('every sink has its turn, however many there are', async () => {
  await sinks.proof.shipEvents(1, 3)
  const ids: string[] = []
  for (let index = 0; index < 9; index += 1) ids.push(await sinks.add({ kind: 'http', name: `sink-${index}` }))
  await sinks.deliver(sinks.runner(), 6)
  for (const id of ids) expect((await sinks.delivery(id)).position).toBe(4)
})

test('a parcel that broke off at the receiver and came again is proved, and anything else in its place is not', async () => {
  await sinks.proof.shipEvents(1, 20)
  await sinks.add({ kind: 'http' })
  await sinks.deliver()
  const [one = '', two = ''] = sinks.lines
  expect((await verified([one, two, ...sinks.lines])).at(-1)).toMatchObject({ findings: 0, records: 20 })
  const other = JSON.stringify({ ...JSON.parse(one), verdict: 'deny' })
  expect((await verified([other, ...sinks.lines])).at(-1)).toMatchObject({ findings: 1 })
})
