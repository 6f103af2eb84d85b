import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { newId } from '../../lib/ids.ts'
import { silentLog } from '../../lib/log/log.ts'
import type { Database } from '../../store/open.ts'
import { type Event, noAttribution } from '../event.ts'
import { chainStart } from '../log/chain.ts'
import { quarantinedType } from '../log/quarantine.ts'
import type { LogRecord } from '../log/record.ts'
import { emptyTestDatabases, openTestDatabases, type TestDatabases, testEvent } from '../testing/ledger.ts'
import { recordedEvents, recordedTexts } from '../testing/recorded.ts'
import { lineOf, WorkerChain } from '../testing/worker-chain.ts'
import { announcedHead, chainHead, ingestEvents } from './ingest.ts'
import type { ShippedBatch } from './read-batch.ts'

let databases: TestDatabases
beforeAll(async () => {
  databases = await openTestDatabases()
})
afterAll(() => databases.remove())
beforeEach(async () => {
  await emptyTestDatabases(databases)
  await databases.ledger.write([{ sql: 'update event_log set next_position = 1', args: [] }])
})

const gatewayId = '01900000-0000-7000-8000-000000000001'
const chain = `${gatewayId}/01900000-0000-7000-8000-000000000002/0`
const receivedAt = Date.parse('2026-01-01T00:10:00Z')

const gatewayEvent = (change: Partial<LogRecord> = {}): LogRecord => ({
  ...testEvent({ event_attribution: { ...noAttribution, gateway_id: gatewayId, team_id: 'team', token_id: 'token' } }),
  ...change,
})
const inner = (event_id = newId()) => ({ event_id, verdict: 'allow' as const, reason_code: 'ok' })

const chainOf = (events: readonly Event[], name = chain): WorkerChain =>
  new WorkerChain(
    events.map((event) => JSON.stringify(event)),
    name,
  )
const worker = (count: number): WorkerChain => chainOf(Array.from({ length: count }, () => gatewayEvent()))
const terms = { gatewayId, receivedAt, newId, log: silentLog, bookingStatements: () => [], onIngested: () => undefined }
const ingest = (batch: ShippedBatch, name = chain, ledger: Database = databases.ledger) =>
  ingestEvents(ledger, { ...terms, chain: name, ...batch })
const shown = () => recordedEvents(databases.ledger)
const typesOf = (events: readonly Event[]): string[] => events.map(({ event_type }) => event_type)
const stored = () => recordedTexts(databases.ledger)
const codeOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'accepted',
    (error: unknown) => (error instanceof Error && 'code' in error ? String(error.code) : String(error)),
  )

test('shows the time of receipt for a record with a forged time', async () => {
  await ingest(chainOf([gatewayEvent({ timestamp: '2099-01-01T00:00:00Z' }), gatewayEvent()]).batch())
  expect((await shown()).map(({ timestamp }) => timestamp)).toEqual([
    '2026-01-01T00:10:00.000Z',
    '2026-01-01T00:00:00.000Z',
  ])
  expect(JSON.parse((await stored())[0] ?? '')).toMatchObject({ timestamp: '2099-01-01T00:00:00Z' })
})

test('a chain head that is missing or too early in the ledger is a fork and not a server error', async () => {
  const lines = worker(4)
  await ingest(lines.batch(0, 3))
  await databases.ledger.write([{ sql: 'delete from chains', args: [] }])
  expect(await codeOf(ingest(lines.batch()))).toBe('chain_fork')
})

test('a new chain starts at 0 with its own digest', async () => {
  expect(await chainHead(databases.ledger, chain)).toEqual({ seq: 0, digest: chainStart(chain) })
  expect(await ingest(worker(0).batch())).toEqual({ seq: 0, digest: chainStart(chain) })
})

test('announces the head with earlier points of the chain, each with its digest', async () => {
  const lines = worker(9)
  for (let from = 0; from < 9; from += 1) await ingest(lines.batch(from, from + 1))
  const { seq, digest, earlier } = await announcedHead(databases.ledger, chain)
  expect({ seq, digest }).toEqual({ seq: 9, digest: lines.digest(9) })
  expect(earlier).toEqual([1, 5, 7, 8].map((point) => ({ seq: point, digest: lines.digest(point) })))
})

describe('a batch', () => {
  test('is stored byte for byte and answered with the head', async () => {
    const lines = worker(3)
    expect(await ingest(lines.batch())).toEqual({ seq: 3, digest: lines.digest() })
    expect(await stored()).toEqual([...lines.texts])
    expect(await chainHead(databases.ledger, chain)).toEqual({ seq: 3, digest: lines.digest() })
  })

  test('is a gap if it starts after the head', async () => {
    const lines = worker(4)
    expect(await codeOf(ingest(lines.batch(1)))).toBe('chain_gap')
    await ingest(lines.batch(0, 1))
    expect(await codeOf(ingest(lines.batch(2)))).toBe('chain_gap')
    expect(await stored()).toEqual(lines.texts.slice(0, 1))
  })

  test.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53])(
    'is a gap if it starts at %p',
    async (first) => {
      expect(await codeOf(ingest({ ...worker(2).batch(), first }))).toBe('chain_gap')
      expect(await stored()).toEqual([])
    },
  )

  test('is a fork if a record is missing in it, is moved or is changed', async () => {
    const lines = worker(4)
    const [one = '', two = '', three = '', four = ''] = lines.texts
    for (const texts of [
      [one, three, four],
      [one, three, two, four],
      [one, two, three, `${four} `],
    ]) {
      expect(await codeOf(ingest({ first: 1, lines: texts.map(lineOf), digest: lines.digest() }))).toBe('chain_fork')
    }
    expect(await stored()).toEqual([])
  })

  test('is a fork if a recorded number has other content or the digest does not follow', async () => {
    const lines = worker(3)
    await ingest(lines.batch())
    expect(await codeOf(ingest(worker(3).batch()))).toBe('chain_fork')
    expect(await codeOf(ingest(worker(4).batch()))).toBe('chain_fork')
    expect(await codeOf(ingest(worker(2).batch()))).toBe('chain_fork')
    const another = [lineOf(JSON.stringify(gatewayEvent()))]
    expect(await codeOf(ingest({ first: 4, lines: another, digest: '00'.repeat(32) }))).toBe('chain_fork')
    expect(await codeOf(ingest({ ...lines.batch(), digest: '00'.repeat(32) }))).toBe('chain_fork')
    expect(await stored()).toEqual([...lines.texts])
  })

  test('keeps a line that is no valid record at its place in the chain, shown as quarantined', async () => {
    const unclear: string[] = [
      JSON.stringify(gatewayEvent({ event_type: 'token.created' })),
      JSON.stringify(gatewayEvent({ event_type: quarantinedType })),
      JSON.stringify(gatewayEvent({ event_attribution: { ...noAttribution, gateway_id: '' } })),
      JSON.stringify(gatewayEvent({ event_attribution: { ...noAttribution, gateway_id: newId(), team_id: 'team' } })),
      JSON.stringify(gatewayEvent({ event_id: 'not an id' })),
      JSON.stringify(gatewayEvent({ event_type: 'decision', attempts: [inner()] })),
      JSON.stringify(gatewayEvent({ attempts: [inner('not an id')] })),
      JSON.stringify(gatewayEvent()).replace('{', '{"attempts":7,'),
      JSON.stringify(gatewayEvent()).replace('{', '{"decisions":[null],'),
      '{"event_id":}',
      '{"event_id":"\ud800"}',
      'null',
      '[]',
      '"text"',
      '',
      ' ',
      '[['.repeat(50_000),
    ]
    const good = gatewayEvent()
    const lines = new WorkerChain([...unclear, JSON.stringify(good)], chain)
    expect(await ingest(lines.batch())).toMatchObject({ seq: unclear.length + 1 })
    expect(await ingest(lines.batch())).toMatchObject({ seq: unclear.length + 1 })
    expect((await stored()).map((text) => text.toWellFormed())).toEqual(lines.texts.map((text) => text.toWellFormed()))
    const events = await shown()
    expect(typesOf(events)).toEqual([...unclear.map(() => quarantinedType), 'gateway.request.outcome'])
    expect(events[0]).toMatchObject({
      reason_code: 'event.not_valid',
      timestamp: '2026-01-01T00:10:00.000Z',
      event_attribution: { ...noAttribution, gateway_id: gatewayId },
      details: { chain, seq: 1, bytes: Buffer.byteLength(unclear[0] ?? '') },
    })
  })

  test('keeps a record that repeats an id within the batch, shown as quarantined', async () => {
    const [twice, attempt] = [gatewayEvent(), inner()]
    const lines = chainOf([
      twice,
      twice,
      gatewayEvent({ attempts: [attempt] }),
      gatewayEvent({ attempts: [attempt] }),
      gatewayEvent({ attempts: [inner(twice.event_id)] }),
      gatewayEvent({ attempts: [inner()], decisions: [inner()] }),
    ])
    expect(await ingest(lines.batch())).toEqual({ seq: 6, digest: lines.digest() })
    const outcomes = (await shown()).filter(
      ({ event_type }) => !['gateway.provider.attempt', 'decision'].includes(event_type),
    )
    expect(outcomes.map(({ reason_code }) => reason_code)).toEqual([
      ...['ok', 'event.repeated_id', 'ok', 'event.repeated_id', 'event.repeated_id', 'ok'],
    ])
    expect(await stored()).toEqual([...lines.texts])
  })

  test('is refused if a line of it has a line feed, which would make it two', async () => {
    const lines = new WorkerChain([JSON.stringify(gatewayEvent()), JSON.stringify(gatewayEvent(), null, 1)], chain)
    expect(await codeOf(ingest(lines.batch()))).toBe('invalid_parameter')
    expect(await stored()).toEqual([])
  })

  test.each([
    ['of 10 MiB', { model: 'x'.repeat(10 * 1024 * 1024) }],
    ['with 100 000 policies', { policy_results: Array.from({ length: 100_000 }, () => ({ policy_id: newId() })) }],
    ['nested 40 000 deep', null],
  ])('keeps a record %s, shown as quarantined', async (_, given) => {
    const details = given === null ? `{"deep":${'['.repeat(40_000)}${']'.repeat(40_000)}}` : JSON.stringify(given)
    const text = JSON.stringify(gatewayEvent({ details: {} })).replace('"details":{}', `"details":${details}`)
    const lines = new WorkerChain([text, JSON.stringify(gatewayEvent())], chain)
    expect(await ingest(lines.batch())).toMatchObject({ seq: 2 })
    expect((await shown()).map(({ reason_code }) => reason_code)).toEqual(['event.not_valid', 'ok'])
    expect((await stored()).map(({ length }) => length)).toEqual(lines.texts.map(({ length }) => length))
  })

  test('keeps a record that was carried over once, if the former chain of its worker has it', async () => {
    const former = `${gatewayId}/01900000-0000-7000-8000-000000000009/0`
    const events = [gatewayEvent(), gatewayEvent(), gatewayEvent()]
    await ingest(chainOf(events.slice(0, 2), former).batch(), former)
    const carried = events.map((event, index) =>
      gatewayEvent({
        ...event,
        details: { carried_from: { instance_id: '01900000-0000-7000-8000-000000000009', n: index + 1 } },
      }),
    )
    // The ledger has another record at the number of the second.
    const other = gatewayEvent({ details: { ...carried[1]?.details } })
    const lines = chainOf([...carried, other])
    expect(await ingest(lines.batch())).toMatchObject({ seq: 4 })
    expect((await shown()).map(({ reason_code }) => reason_code)).toEqual([
      ...['ok', 'ok', 'event.repeated_id', 'event.repeated_id', 'ok', 'ok'],
    ])
  })

  test('books what it reports in the transaction that appends it, each record once', async () => {
    const booked: number[] = []
    const told: number[] = []
    const lines = worker(5)
    const counting = {
      bookingStatements(records: readonly LogRecord[]) {
        booked.push(records.length)
        return []
      },
      onIngested: (records: readonly LogRecord[]) => told.push(records.length),
    }
    const post = (batch: ShippedBatch) => ingestEvents(databases.ledger, { ...terms, ...counting, chain, ...batch })
    await post(lines.batch(0, 3))
    await post(lines.batch(1, 5))
    await post(lines.batch())
    expect([booked, told]).toEqual([
      [3, 2],
      [3, 2],
    ])
  })

  test('leaves nothing behind if what it books fails', async () => {
    const fails = { ...terms, bookingStatements: () => [{ sql: 'insert into nowhere values (1)', args: [] }] }
    expect(await codeOf(ingestEvents(databases.ledger, { ...fails, chain, ...worker(3).batch() }))).toBe('SQLITE_ERROR')
    expect(await stored()).toEqual([])
    expect(await chainHead(databases.ledger, chain)).toEqual({ seq: 0, digest: chainStart(chain) })
    const lines = worker(2)
    expect(await ingest(lines.batch())).toMatchObject({ seq: 2 })
    expect(await stored()).toEqual([...lines.texts])
  })
})

test('stores each record exactly once, however a worker repeats and overlaps its batches', async () => {
  const total = 12
  const cut = fc.tuple(fc.integer({ min: 0, max: total }), fc.integer({ min: 0, max: total }))
  await fc.assert(
    fc.asyncProperty(fc.array(cut, { maxLength: 12 }), async (cuts) => {
      await emptyTestDatabases(databases)
      const lines = worker(total)
      let head = 0
      for (const [one, other] of cuts) {
        const [from, to] = [Math.min(one, other, head), Math.max(one, other)]
        const answer = await ingest(lines.batch(from, to))
        head = Math.max(head, to > from ? to : head)
        expect(answer).toEqual({ seq: head, digest: lines.digest(head) })
      }
      expect(await ingest(lines.batch())).toMatchObject({ seq: total })
      expect(await stored()).toEqual([...lines.texts])
    }),
    { numRuns: 40 },
  )
})

test('stores a batch once that two connections post at once', async () => {
  const lines = worker(50)
  const heads = await Promise.all([ingest(lines.batch()), ingest(lines.batch()), ingest(lines.batch(0, 20))])
  expect(Math.max(...heads.map(({ seq }) => seq))).toBe(50)
  expect(await stored()).toEqual([...lines.texts])
})

test('a chain that grew between the read of its head and the write gets the rest', async () => {
  const lines = worker(30)
  let isFirst = true
  const slow: Database = {
    ...databases.ledger,
    async write(statements, patient) {
      if (isFirst) await ingest(lines.batch(0, 14))
      isFirst = false
      await databases.ledger.write(statements, patient)
    },
  }
  expect(await ingest(lines.batch(), chain, slow)).toEqual({ seq: 30, digest: lines.digest() })
  expect(await stored()).toEqual([...lines.texts])
})

test('a batch whose answer was lost is answered again with the same head', async () => {
  const lines = worker(6)
  const lost: Database = {
    ...databases.ledger,
    async write(statements, patient) {
      await databases.ledger.write(statements, patient)
      throw new Error('The connection was lost')
    },
  }
  expect(await codeOf(ingest(lines.batch(), chain, lost))).toContain('The connection was lost')
  expect(await ingest(lines.batch())).toEqual({ seq: 6, digest: lines.digest() })
  expect(await stored()).toEqual([...lines.texts])
})

test('waits for a busy primary, and says that it is unavailable if that lasts', async () => {
  const lines = worker(3)
  let refusals = 2
  const busy: Database = {
    ...databases.ledger,
    async write(statements, patient) {
      refusals -= 1
      if (refusals >= 0) throw Object.assign(new Error('busy'), { code: 'SQLITE_BUSY' })
      await databases.ledger.write(statements, patient)
    },
  }
  expect(await ingest(lines.batch(), chain, busy)).toMatchObject({ seq: 3 })
  refusals = 100
  expect(await codeOf(ingest(chainOf([gatewayEvent()], `${chain}0`).batch(), `${chain}0`, busy))).toBe(
    'dependency_unavailable',
  )
  expect(await stored()).toEqual([...lines.texts])
})
