/** Alterations of the index of a segment, of its rows and of what the ledger says of the whole log. */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { alterHeader } from '../testing/alter-log.ts'
import { TestProof } from '../testing/proof.ts'

let proof: TestProof
const worker = () => proof.worker(1)
const ledger = () => proof.store.ledger

/** Positions 1–6: worker 1, 7–9: worker 2, 10–12: worker 1, in one merged segment of blocks of 4; 13–14: worker 2. */
beforeEach(async () => {
  proof = await TestProof.start()
  for (const [gateway, count] of [
    [1, 4],
    [1, 2],
    [2, 2],
    [2, 1],
    [1, 3],
  ] as const) {
    await proof.shipEvents(gateway, count)
  }
  expect(await proof.merge(4, 5)).toBe(1)
  await proof.shipEvents(2, 2)
  await proof.sign()
  expect(await proof.findings()).toEqual([])
})
afterEach(() => proof.store.remove())

describe('verification finds in the index of a segment', () => {
  test.each([
    ['event_segments', 'records = records + 1', ['segment.index_altered 1–12 records']],
    ['event_segments', 'received_at = received_at + 1', ['segment.index_altered 1–12 received_at']],
    ['event_segments', 'received_at = received_at - 1e9', ['segment.index_altered 1–12 received_at']],
    ['event_segments', "header = x'00'", ['segment.damaged 1–12 header']],
    ['event_segments', "ids = x'00'", ['segment.damaged 1–12 ids']],
    ['event_segments', 'ids = cast(ids as text)', ['segment.damaged 1–12 ids']],
  ])('an altered row of %s: %s', async (table, change, found) => {
    await proof.run(`update ${table} set ${change} where first_position = 1`)
    const all = await proof.findings()
    expect(all).toEqual(expect.arrayContaining(found))
    expect(all.length).toBeLessThanOrEqual(found.length + 1)
  })

  test.each([
    ['ordinal = 7', ['segment.index_altered 1–12 ordinal']],
    ['records = records + 1', ['events.damaged 01900001 5–6', 'events.damaged 01900002 1–2']],
    ['bytes = bytes - 1', ['events.damaged 01900001 5–6', 'events.damaged 01900002 1–2']],
    ['body = cast(body as text)', ['events.damaged 01900001 5–6', 'events.damaged 01900002 1–2']],
    [
      'segment = 13',
      ['segment.index_altered 13–14 event_blocks', 'events.missing 01900001 5–6', 'events.missing 01900002 1–2'],
    ],
    ['segment = 99', ['segment.unknown event_blocks', 'events.missing 01900001 5–6', 'events.missing 01900002 1–2']],
  ])('an altered row of event_blocks: %s', async (change, found) => {
    await proof.run(`update event_blocks set ${change} where first_position = 5`)
    const all = await proof.findings()
    expect(all).toEqual(expect.arrayContaining(found))
    expect(all.length).toBeLessThanOrEqual(found.length + 1)
  })

  test('a block that begins earlier or ends later, and one at another place', async () => {
    const named = /events.damaged 01900001 5–6|segment.index_altered 1–12 times|events.arrival_altered 01900001 1–9/
    for (const [column, by] of [
      ['first_at', 1],
      ['last_at', -1],
    ] as const) {
      await proof.run(`update event_blocks set ${column} = ${column} - ${by} where first_position = 5`)
      expect((await proof.findings()).join()).toMatch(named)
      await proof.run(`update event_blocks set ${column} = ${column} + ${by} where first_position = 5`)
    }
    expect(await proof.findings()).toEqual([])
    await proof.run('update event_blocks set first_position = 1005 where first_position = 5')
    expect(await proof.findings()).toContain('events.missing 01900001 5–6')
  })

  test.each([
    'first_seq = first_seq + 1',
    'last_seq = last_seq - 1',
    "chain = 'other'",
    "chain = chain || char(0) || 'x'",
    "chain = cast(x'61ff' as text)",
    "digest_before = 'other'",
    "digest_before = cast(x'ff' as text)",
    'digest_before = cast(digest_before as blob)',
    'last_seq = 9223372036854775807',
  ])('an altered row of segment_chains: %s', async (change) => {
    await proof.run(`update segment_chains set ${change} where segment = 1 and chain = ?`, worker())
    expect(await proof.findings()).toEqual(['segment.index_altered 1–12 segment_chains'])
  })

  test('a header with other facets, events, runs or chains, whose checksum holds', async () => {
    const altered = async (change: Parameters<typeof alterHeader>[2]) => {
      const [row] = await ledger().read<{ header: ArrayBuffer }>(
        'select header from event_segments where first_position = 1',
      )
      await alterHeader(ledger(), 1, change)
      const found = await proof.findings()
      await ledger().write([
        {
          sql: 'update event_segments set header = ? where first_position = 1',
          args: [new Uint8Array(row?.header ?? [])],
        },
      ])
      return found
    }
    const noFacets = await altered((header) => ({ ...header, facets: new Map() }))
    expect(noFacets).toContain('segment.index_altered 1–12 facets')
    expect(await altered((header) => ({ ...header, events: 13 }))).toEqual(['segment.index_altered 1–12 events'])
    expect(await altered(({ chains, ...rest }) => ({ ...rest, chains: chains.slice(1) }))).toEqual([
      ...['segment.index_altered 1–12 chains', 'segment.index_altered 1–12 segment_chains'],
    ])
    const otherDigest = await altered(({ runs, ...rest }) => ({
      ...{ ...rest, runs: runs.map((run, index) => (index === 0 ? { ...run, digest: '00'.repeat(32) } : run)) },
    }))
    expect(otherDigest).toEqual(['event.digest_altered 01900001 6–6'])
    const otherChain = await altered(({ runs, ...rest }) => ({
      ...{ ...rest, runs: runs.map((run, index) => (index === 1 ? { ...run, chain: proof.worker(3) } : run)) },
    }))
    expect(otherChain).toContain('events.missing 01900002 1–3')
    expect(otherChain).toContain('chain.unknown 01900003 1–3')
    expect(await proof.findings()).toEqual([])
  })

  test('a flipped bit in the header and in the hashes of ids', async () => {
    const [row] = await ledger().read<{ header: ArrayBuffer; ids: ArrayBuffer }>(
      'select header, ids from event_segments',
    )
    for (const column of ['header', 'ids'] as const) {
      const whole = new Uint8Array(row?.[column] ?? [])
      for (const place of [0, 3, 7, whole.length >> 1, whole.length - 1]) {
        const flipped = whole.with(place, (whole[place] ?? 0) ^ 64)
        const write = (bytes: Uint8Array) =>
          ledger().write([{ sql: `update event_segments set ${column} = ? where first_position = 1`, args: [bytes] }])
        await write(flipped)
        expect(await proof.findings()).toEqual([`segment.damaged 1–12 ${column}`])
        await write(whole)
      }
    }
  })

  test('a segment that was taken out with all its rows, and two whose places were swapped', async () => {
    const move = async (from: number, to: number) => {
      for (const table of ['event_blocks', 'segment_facets', 'segment_chains']) {
        await proof.run(`update ${table} set segment = ? where segment = ?`, to, from)
      }
      await proof.run('update event_blocks set first_position = first_position + ? where segment = ?', to - from, to)
      await proof.run('update event_segments set first_position = ? where first_position = ?', to, from)
    }
    await move(1, 101)
    await move(13, 1)
    await move(101, 3)
    const swapped = await proof.findings()
    expect(swapped).toContain('event.inserted 01900002 1–3')
    expect(swapped).toContain('events.arrival_altered 01900001 1–9')
    await move(3, 101)
    await move(1, 13)
    await move(101, 1)
    expect(await proof.findings()).toEqual([])
    for (const table of ['event_blocks', 'segment_facets', 'segment_chains']) {
      await proof.run(`delete from ${table} where segment = 1`)
    }
    await proof.run('delete from event_segments where first_position = 1')
    expect(await proof.findings()).toEqual([
      ...['segment.missing 1–12', 'events.missing 01900001 1–9', 'events.missing 01900002 1–3'],
    ])
  })

  test('a segment that was put in beside the others, at the end and among them', async () => {
    for (const first of [5, 15, 900]) {
      await proof.run(
        'insert into event_segments select ?, records, received_at, header, ids from event_segments where first_position = 13',
        first,
      )
      const found = await proof.findings()
      expect(found.join()).toContain(
        first === 5 ? 'segment.unknown 5–6 event_segments' : 'log.head_altered next_position',
      )
      await proof.run('delete from event_segments where first_position = ?', first)
    }
  })
})

describe('verification finds in what the ledger says of the log and its chains', () => {
  test('another end of the log', async () => {
    await proof.run('update event_log set next_position = 13')
    expect(await proof.findings()).toEqual(['log.head_altered next_position', 'events.missing 01900002 4–5'])
    await proof.run('update event_log set next_position = 20')
    expect(await proof.findings()).toEqual(['segment.missing 15–19'])
    await proof.run('delete from event_log')
    expect(await proof.findings()).toContain('log.head_altered next_position')
  })

  test('an instant before which events were removed, although none were', async () => {
    await proof.run('update event_log set removed_until = 1')
    expect(await proof.findings()).toEqual(['log.head_altered removed_until'])
  })

  test('an altered head of a chain', async () => {
    await proof.run("update chains set digest = 'other' where chain = ?", worker())
    expect(await proof.findings()).toEqual(['chain.head_altered 01900001 9–9'])
    await proof.run('update chains set seq = 8 where chain = ?', worker())
    expect(await proof.findings()).toEqual(['chain.head_altered 01900001 9–9'])
    await proof.run('update chains set seq = 12 where chain = ?', worker())
    expect(await proof.findings()).toEqual(['events.missing 01900001 10–12'])
    for (const seq of ['9223372036854775807', '9007199254740993', '7.3', "'x'"]) {
      await proof.run(`update chains set seq = ${seq} where chain = ?`, worker())
      expect(await proof.findings()).toEqual(['chain.head_altered 01900001 9–9'])
    }
    await proof.run('delete from chains where chain = ?', worker())
    expect(await proof.findings()).toEqual(['chain.unknown 01900001 1–9'])
  })

  test('an altered time of a head, and a chain without records', async () => {
    await proof.run('update chains set updated_at = updated_at + 1 where chain = ?', worker())
    expect(await proof.findings()).toEqual(['chain.head_altered 01900001 9–9'])
    await proof.run('update chains set updated_at = updated_at - 1 where chain = ?', worker())
    await proof.run("insert into chains (chain, seq, digest, updated_at) values ('other', 2, 'digest', 1)")
    expect(await proof.findings()).toEqual(['events.missing other 1–2'])
  })

  test.each([
    ['a NUL and more behind it', "chain || char(0) || 'x'"],
    ['bytes that are no UTF-8', "cast(cast(chain as blob) || x'ff' as text)"],
  ])('%s, in the name of a chain', async (_name, change) => {
    await proof.run(`update chains set chain = ${change} where chain = ?`, worker())
    const found = await proof.findings()
    expect(found).toContain('chain.head_altered 01900001')
    expect(found).toContain('chain.unknown 01900001 1–9')
  })
})
