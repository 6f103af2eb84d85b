import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { systemClock } from '../../lib/clock.ts'
import { newId } from '../../lib/ids.ts'
import { silentLog } from '../../lib/log/log.ts'
import type { Database } from '../../store/open.ts'
import { type Event, eventSchema, noAttribution } from '../event.ts'
import { readEventPage } from '../query/query.ts'
import { emptyTestDatabases, openTestDatabases, type TestDatabases, testEvent } from '../testing/ledger.ts'
import { chainNext, chainStart } from './chain.ts'
import { chainHead, ingestEvents, type ShippedEvent } from './ingest.ts'
import { SlicePace } from './slice-pace.ts'

let databases: TestDatabases
beforeAll(async () => {
  databases = await openTestDatabases()
})
afterAll(() => databases.remove())
beforeEach(() => emptyTestDatabases(databases))

const gatewayId = '01900000-0000-7000-8000-000000000001'
const chain = `${gatewayId}/01900000-0000-7000-8000-000000000002/0`
const receivedAt = Date.parse('2026-01-01T00:10:00Z')

const gatewayEvent = (change: Partial<Event> = {}): Event =>
  testEvent({
    event_attribution: { ...noAttribution, gateway_id: gatewayId, team_id: 'team', token_id: 'token' },
    ...change,
  })

/** A worker's chain of events from its beginning. */
const shipped = (events: readonly Event[], named = chain): ShippedEvent[] =>
  shippedBodies(
    events.map((event) => JSON.stringify(event)),
    named,
  )

function shippedBodies(bodies: readonly string[], named = chain): ShippedEvent[] {
  let digest = chainStart(named)
  return bodies.map((body, index) => {
    digest = chainNext(digest, index + 1, body)
    return { n: index + 1, digest, body }
  })
}

const worker = (count: number): ShippedEvent[] => shipped(Array.from({ length: count }, () => gatewayEvent()))
const nothing = { bookingStatements: () => [], onIngested: () => undefined }
const batch = {
  chain,
  gatewayId,
  receivedAt,
  pace: new SlicePace(systemClock),
  newId,
  log: silentLog,
  ...nothing,
}
const ingest = (lines: readonly ShippedEvent[]) => ingestEvents(databases.ledger, { ...batch, lines })
const shown = () =>
  readEventPage(databases.ledger, {
    filters: { since: '7d' },
    since: 0,
    limit: 100,
    cursor: undefined,
    visibility: { teams: 'every', ownTokens: [] },
  })
const stored = () =>
  databases.ledger.read<ShippedEvent>('select seq as n, digest, body from events where chain = ? order by position', [
    chain,
  ])
const codeOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'accepted',
    (error: unknown) => (error instanceof Error && 'code' in error ? String(error.code) : String(error)),
  )

test('shows the time of receipt for an event with a forged time, as filters do', async () => {
  await ingest(shipped([gatewayEvent({ timestamp: '2099-01-01T00:00:00Z' }), gatewayEvent()]))
  const { events } = await shown()
  expect(events.map(({ timestamp }) => timestamp)).toEqual(['2026-01-01T00:00:00.000Z', '2026-01-01T00:10:00.000Z'])
})

test('a chain head that is missing or too early in the ledger is a fork and not a server error', async () => {
  const lines = worker(4)
  await ingest(lines.slice(0, 3))
  await databases.ledger.write([{ sql: 'delete from chains', args: [] }])
  expect(await codeOf(ingest(lines))).toBe('chain_fork')
})

test('a new chain starts at 0 with its own digest', async () => {
  expect(await chainHead(databases.ledger, chain)).toEqual({ seq: 0, digest: chainStart(chain) })
  expect(await ingest([])).toEqual({ seq: 0, digest: chainStart(chain) })
})

describe('a batch', () => {
  test('is stored byte for byte and answered with the head', async () => {
    const lines = worker(3)
    expect(await ingest(lines)).toEqual({ seq: 3, digest: lines[2]?.digest ?? '' })
    expect(await stored()).toEqual(lines)
    expect(await chainHead(databases.ledger, chain)).toEqual({ seq: 3, digest: lines[2]?.digest ?? '' })
  })

  test('fills the columns from the body and limits a future time to the time of receipt', async () => {
    const body = gatewayEvent({
      timestamp: '2030-01-01T00:00:00.000Z',
      verdict: 'deny',
      reason_code: 'invalid_api_token',
    })
    await ingest(shipped([body]))
    const [row] = await databases.ledger.read('select * from events')
    expect(row).toMatchObject({
      event_id: body.event_id,
      event_type: body.event_type,
      timestamp: receivedAt,
      request_id: body.request_id,
      verdict: 'deny',
      reason_code: 'invalid_api_token',
      gateway_id: gatewayId,
      team_id: 'team',
      token_id: 'token',
      received_at: receivedAt,
    })
    expect(JSON.parse(String((await stored())[0]?.body)).timestamp).toBe('2030-01-01T00:00:00.000Z')
  })

  test('is a gap if it starts after the head or has a hole', async () => {
    const lines = worker(4)
    expect(await codeOf(ingest(lines.slice(1)))).toBe('chain_gap')
    expect(await codeOf(ingest(lines.filter(({ n }) => n !== 2)))).toBe('chain_gap')
    expect(await stored()).toEqual([])
  })

  test('is a fork if a recorded number has other content or a digest does not follow', async () => {
    const lines = worker(3)
    await ingest(lines)
    expect(await codeOf(ingest(worker(3)))).toBe('chain_fork')
    expect(await codeOf(ingest(worker(4)))).toBe('chain_fork')
    const [fourth] = shipped([gatewayEvent()])
    expect(await codeOf(ingest([{ n: 4, digest: '00'.repeat(32), body: fourth?.body ?? '' }]))).toBe('chain_fork')
    expect(await stored()).toEqual(lines)
  })

  test('keeps an unreadable event at its place in the chain, shown as quarantined', async () => {
    const unclear: string[] = [
      JSON.stringify(gatewayEvent({ event_type: 'token.created' })),
      JSON.stringify(gatewayEvent({ event_type: 'fleet.event_quarantined' })),
      JSON.stringify(gatewayEvent({ event_attribution: { ...noAttribution, gateway_id: '' } })),
      JSON.stringify(gatewayEvent({ event_attribution: { ...noAttribution, gateway_id: newId(), team_id: 'team' } })),
      JSON.stringify(gatewayEvent({ event_id: 'not an id' })),
      '{"event_id":}',
    ]
    const good = gatewayEvent()
    const lines = shippedBodies([...unclear, JSON.stringify(good)])
    expect(await ingest(lines)).toMatchObject({ seq: 7 })
    expect(await ingest(lines)).toMatchObject({ seq: 7 })
    expect(await stored()).toEqual(lines)
    const { events } = await shown()
    expect(events.map((event) => eventSchema.parse(event).event_type)).toEqual([
      'gateway.request.outcome',
      ...unclear.map(() => 'fleet.event_quarantined' as const),
    ])
    expect(events.at(-1)).toMatchObject({
      reason_code: 'event.not_valid',
      timestamp: '2026-01-01T00:10:00.000Z',
      event_attribution: { ...noAttribution, gateway_id: gatewayId },
      details: { chain, seq: 1, bytes: Buffer.byteLength(unclear[0] ?? '') },
    })
  })

  test('keeps an event with a recorded id, of this chain or another, without recording it twice', async () => {
    const event = gatewayEvent()
    const other = `${gatewayId}/01900000-0000-7000-8000-000000000003/0`
    await ingest(shipped([event]))
    const twice = gatewayEvent()
    const lines = shipped([event, twice, twice], other)
    const head = await ingestEvents(databases.ledger, { ...batch, chain: other, lines })
    expect(head).toEqual({ seq: 3, digest: lines[2]?.digest ?? '' })
    const { events } = await shown()
    expect(events.map(({ reason_code }) => reason_code)).toEqual(['event.repeated_id', 'ok', 'event.repeated_id', 'ok'])
  })
})

test('stores each event exactly once, however a worker repeats and overlaps its batches', async () => {
  const total = 12
  const cut = fc.tuple(fc.integer({ min: 0, max: total }), fc.integer({ min: 0, max: total }))
  await fc.assert(
    fc.asyncProperty(fc.array(cut, { maxLength: 12 }), async (cuts) => {
      await emptyTestDatabases(databases)
      const lines = worker(total)
      let head = 0
      for (const [one, other] of cuts) {
        const [from, to] = [Math.min(one, other, head), Math.max(one, other)]
        const answer = await ingest(lines.slice(from, to))
        head = Math.max(head, to > from ? to : head)
        expect(answer.seq).toBe(head)
      }
      expect(await ingest(lines)).toMatchObject({ seq: total })
      expect(await stored()).toEqual(lines)
    }),
    { numRuns: 40 },
  )
})

test('stores a batch once that two connections post at once', async () => {
  const lines = worker(50)
  const heads = await Promise.all([ingest(lines), ingest(lines), ingest(lines.slice(0, 20))])
  expect(Math.max(...heads.map(({ seq }) => seq))).toBe(50)
  expect(await stored()).toEqual(lines)
})

test('writes a batch in slices whose size follows the duration of earlier slices', async () => {
  const slices: number[] = []
  const slow: Database = {
    ...databases.ledger,
    async write(statements, patient) {
      const before = await count()
      await databases.ledger.write(statements)
      slices.push((await count()) - before)
      patient?.held?.((slices.at(-1) ?? 0) * 0.1)
    },
  }
  const count = async () => (await databases.ledger.read<{ n: number }>('select count(*) as n from events'))[0]?.n ?? 0
  const pace = new SlicePace({ monotonic: () => 0 }, { targetMs: 5 })
  const lines = worker(400)
  await ingestEvents(slow, { ...batch, pace, lines })
  expect(slices).toEqual([64, 50, 50, 50, 50, 50, 50, 36])
  expect(await stored()).toEqual(lines)
})

test('does not read the head again between slices, and detects a chain that grew meanwhile', async () => {
  for (const grown of [false, true]) {
    await emptyTestDatabases(databases)
    const lines = worker(300)
    const steps: string[] = []
    const watched: Database = {
      ...databases.ledger,
      read(sql, args) {
        steps.push('read')
        return databases.ledger.read(sql, args)
      },
      async write(statements, patient) {
        if (grown && steps.filter((step) => step === 'write').length === 1) await ingest(lines.slice(0, 140))
        steps.push('write')
        await databases.ledger.write(statements, patient)
      },
    }
    const pace = new SlicePace(systemClock, { least: 128, most: 128 })
    expect(await ingestEvents(watched, { ...batch, pace, lines })).toMatchObject({ seq: 300 })
    expect(await stored()).toEqual(lines)
    const others = grown ? ['read', 'read', 'write'] : []
    expect(steps).toEqual(['read', 'write', 'write', ...others, 'write'])
  }
})
