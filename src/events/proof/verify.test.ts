/** Every kind of tampering at every place, each to be found and named; long because it is a table. */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import fc from 'fast-check'
import { silentLog } from '../../lib/log/log.ts'
import { chainNext, chainStart } from '../log/chain.ts'
import { removeOldEvents } from '../retention/retention.ts'
import { rollupStatements } from '../rollups/rollup.ts'
import { retentionDays, TestProof } from '../testing/proof.ts'
import { readStateCheckpoint } from './checkpoint.ts'
import { loadSigningKey, publishKey, type Signed } from './checkpoint-key.ts'

const day = 86_400_000
let proof: TestProof

/** Ten events on one worker with one put aside, three on another, three of the control plane; then a checkpoint. */
async function prepare(): Promise<TestProof> {
  const made = await TestProof.start()
  await made.shipEvents(1, 4)
  await made.ship(1, ['{"not":"an event"}'])
  await made.shipEvents(2, 3)
  await made.record(3)
  await made.sign()
  await made.shipEvents(1, 5)
  await made.sign()
  return made
}

beforeEach(async () => {
  proof = await prepare()
})
afterEach(() => proof.store.remove())

/** The sums that charts show are made anew of the events that are left. */
async function forgetSums(): Promise<void> {
  await proof.run('delete from event_rollups')
  await proof.run('delete from pending_event_rollups')
  const rows = await proof.store.ledger.read<{ body: string; received_at: number }>(
    "select body, received_at from events where event_type = 'gateway.request.outcome'",
  )
  for (const { body, received_at: at } of rows) await proof.store.ledger.write(rollupStatements([JSON.parse(body)], at))
}

const worker = () => proof.worker(1)
const at = (seq: number) => `chain = '${worker()}' and seq = ${seq}`

describe('verification of an untouched ledger', () => {
  test('succeeds and reports what no checkpoint covers yet', async () => {
    await proof.shipEvents(2, 2)
    const lines = await proof.verify()
    expect(lines.at(-1)).toMatchObject({
      ...{ kind: 'summary', findings: 0, chains: 3, events: 18, not_covered: 2 },
      ...{ checkpoint: { number: 2, key_id: proof.key.id }, keys: [proof.key.id] },
    })
    expect(lines.find((line) => line.kind === 'chain' && line.chain === proof.worker(2))).toMatchObject({
      ...{ events: 5, from: 0, to: 5, covered_to: 3 },
    })
  })

  test('starts at the checkpoint before a given time', async () => {
    const lines = await proof.verify({ since: proof.now - 30_000 })
    expect(lines.at(-1)).toMatchObject({ findings: 0, events: 5 })
  })

  test('succeeds while events arrive and before the first checkpoint', async () => {
    const fresh = await TestProof.start()
    await fresh.shipEvents(1, 450)
    const [lines] = await Promise.all([fresh.verify(), fresh.shipEvents(1, 300)])
    expect(lines.at(-1)).toMatchObject({ findings: 0, checkpoint: null })
    expect((await fresh.verify()).at(-1)).toMatchObject({ findings: 0, events: 750, not_covered: 750 })
    fresh.store.remove()
  })
})

describe('verification finds in a row', () => {
  for (const seq of [1, 3, 6, 10]) {
    test(`an altered body of event ${seq}`, async () => {
      await proof.run(`update events set body = replace(body, '"allow"', '"deny"'), verdict = 'deny' where ${at(seq)}`)
      expect(await proof.findings()).toEqual([`event.altered 01900001 ${seq}–${seq}`])
    })

    test(`an altered digest of event ${seq}`, async () => {
      await proof.run(`update events set digest = ? where ${at(seq)}`, '00'.repeat(32))
      expect(await proof.findings()).toEqual([`event.digest_altered 01900001 ${seq}–${seq}`])
    })

    test(`a deletion of event ${seq}`, async () => {
      await proof.run(`delete from events where ${at(seq)}`)
      expect(await proof.findings()).toEqual([`events.missing 01900001 ${seq}–${seq}`])
    })
  }

  for (const column of [
    'event_id',
    'event_type',
    'request_id',
    'verdict',
    'reason_code',
    'gateway_id',
    'team_id',
    'token_id',
  ]) {
    test(`an altered column ${column}`, async () => {
      await proof.run(`update events set ${column} = 'other' where ${at(3)}`)
      expect(await proof.findings()).toEqual([`event.column_altered 01900001 3–3 ${column}`])
    })
  }

  test('an altered time and time of receipt', async () => {
    await proof.run(`update events set timestamp = timestamp - 1 where ${at(3)}`)
    expect(await proof.findings()).toEqual(['event.column_altered 01900001 3–3 timestamp'])
    await proof.run(`update events set timestamp = timestamp + 1, received_at = received_at + 1 where ${at(3)}`)
    expect(await proof.findings()).toEqual(['events.arrival_altered 01900001 1–5'])
  })

  test('an altered display of a quarantined event', async () => {
    await proof.run(`update events set verdict = 'allow' where ${at(5)}`)
    expect(await proof.findings()).toEqual([
      'events.arrival_altered 01900001 1–5',
      'event.column_altered 01900001 5–5 verdict',
    ])
    await proof.run(`update events set verdict = 'error', reason_code = 'event.repeated_id' where ${at(5)}`)
    expect(await proof.findings()).toEqual(['events.arrival_altered 01900001 1–5'])
  })

  test('a valid event shown as quarantined', async () => {
    await proof.run(
      `update events set event_type = 'fleet.event_quarantined', verdict = 'error', reason_code = 'event.not_valid',
        request_id = null, team_id = null, token_id = null, timestamp = received_at where ${at(3)}`,
    )
    expect(await proof.findings()).toEqual(['events.arrival_altered 01900001 1–5'])
  })

  test('an event by its id, and names it', async () => {
    const [row] = await proof.store.ledger.read<{ event_id: string }>(`select event_id from events where ${at(3)}`)
    await proof.run(`update events set body = body || ' ' where ${at(3)}`)
    expect(await proof.verify()).toContainEqual(
      expect.objectContaining({ what: 'event.altered', from: 3, to: 3, event_id: row?.event_id }),
    )
  })

  test('a value of another type', async () => {
    await proof.run(`update events set body = cast(body as blob) where ${at(3)}`)
    expect(await proof.findings()).toContain('event.altered 01900001 3–3')
  })
})

describe('verification finds in the order', () => {
  test('two swapped events', async () => {
    await proof.run(`update events set seq = -1 where ${at(2)}`)
    await proof.run(`update events set seq = 2 where ${at(3)}`)
    await proof.run(`update events set seq = 3 where chain = ? and seq = -1`, worker())
    expect((await proof.findings()).join()).toContain('event.altered 01900001 2–')
  })

  test('two swapped positions, of one chain and of two chains', async () => {
    const swap = async (one: string, other: string) => {
      const rows = await proof.store.ledger.read<{ position: number }>(
        `select position from events where ${one} or ${other} order by position`,
      )
      const [low, high] = rows.map(({ position }) => position)
      await proof.run('update events set position = -1 where position = ?', low ?? 0)
      await proof.run('update events set position = ? where position = ?', low ?? 0, high ?? 0)
      await proof.run('update events set position = ? where position = -1', high ?? 0)
    }
    await swap(at(3), at(4))
    expect(await proof.findings()).toEqual(['events.arrival_altered 01900001 1–5', 'event.out_of_order 01900001 4–4'])
    await swap(at(3), at(4))
    await swap(at(5), `chain = '${proof.worker(2)}' and seq = 1`)
    expect(await proof.findings()).toEqual([
      'events.arrival_altered 01900001 1–5',
      'events.arrival_altered 01900002 1–3',
    ])
  })
})

describe('verification finds in a whole chain', () => {
  test('a truncated end with a matching head', async () => {
    await proof.run('delete from events where chain = ? and seq > 7', worker())
    expect(await proof.findings()).toEqual(['events.missing 01900001 8–10'])
    await proof.run(
      'update chains set seq = 7, digest = (select digest from events where chain = ?1 and seq = 7) where chain = ?1',
      worker(),
    )
    expect(await proof.findings()).toEqual(['events.missing 01900001 8–10'])
  })

  test('a truncated end without any checkpoint in the ledger', async () => {
    await proof.run('delete from events where chain = ? and seq > 7', worker())
    await proof.run('delete from chains where chain = ?', worker())
    await proof.run('delete from checkpoints')
    expect(await proof.findings()).toEqual([
      ...['checkpoint.missing 1–2', 'chain.unknown 01900001 1–7', 'events.missing 01900001 8–10'],
    ])
  })

  test('a truncated end with all checkpoints reset except one that a gateway has seen', async () => {
    const witness = await readStateCheckpoint(proof.store.state)
    await proof.run('delete from events where chain = ? and seq > 5', worker())
    await proof.run(
      `update chains set (seq, digest, updated_at) =
         (select seq, digest, received_at from events where chain = ?1 and seq = 5) where chain = ?1`,
      worker(),
    )
    const [former] = await proof.store.ledger.read<{ body: string; signature: string }>(
      'select body, signature from checkpoints where number = 1',
    )
    await proof.run('delete from checkpoints where number = 2')
    await proof.store.state.write([
      {
        sql: 'update checkpoints set number = 1, body = ?, signature = ?',
        args: [former?.body ?? '', former?.signature ?? ''],
      },
    ])
    await forgetSums()
    expect(await proof.findings()).toEqual([])
    const { body, key_id, signature } = witness ?? { body: '', key_id: '', signature: '' }
    expect(await proof.findings({ witnesses: [{ body, key_id, signature }] })).toEqual([
      'checkpoint.went_back 2–2',
      'events.missing 01900001 6–10',
    ])
  })

  test('a deletion of all events', async () => {
    await proof.run('delete from events where chain = ?', worker())
    await proof.run('delete from chains where chain = ?', worker())
    expect(await proof.findings()).toEqual(['events.missing 01900001 1–10'])
  })

  test('a deletion of its beginning', async () => {
    await proof.run('delete from events where chain = ? and seq < 4', worker())
    expect(await proof.findings()).toEqual(['events.missing 01900001 1–3'])
  })

  test('rewritten events with matching digests', async () => {
    let digest = chainStart(worker())
    const rows = await proof.store.ledger.read<{ seq: number; body: string }>(
      `select seq, body from events where chain = '${worker()}' order by seq`,
    )
    for (const { seq, body } of rows) {
      const other = seq === 8 ? body.replace('request-1', 'request-2') : body
      digest = chainNext(digest, seq, other)
      await proof.run(
        `update events set body = ?, digest = ?, request_id = json_extract(?1, '$.request_id') where ${at(seq)}`,
        other,
        digest,
      )
    }
    await proof.run('update chains set digest = ? where chain = ?', digest, worker())
    expect(await proof.findings()).toEqual(['events.rewritten 01900001 6–10'])
  })

  test('an event inserted in the middle, with the later ones moved', async () => {
    for (let seq = 10; seq >= 4; seq--) await proof.run(`update events set seq = seq + 1 where ${at(seq)}`)
    await proof.run(
      `insert into events (event_id, chain, seq, digest, body, event_type, timestamp, request_id, verdict, reason_code,
         gateway_id, team_id, token_id, received_at)
       select 'another', chain, 4, digest, body, event_type, timestamp, request_id, verdict, reason_code, gateway_id,
         team_id, token_id, received_at from events where ${at(3)}`,
    )
    const found = await proof.findings()
    expect(found.filter((text) => text.startsWith('event.altered'))).toEqual(['event.altered 01900001 4–11'])
    expect(found).toContain('event.column_altered 01900001 4–4 event_id')
  })

  test('an event appended at the end, and an event of an unknown chain', async () => {
    const insert = (chain: string, seq: number) =>
      proof.run(
        `insert into events (event_id, chain, seq, digest, body, event_type, timestamp, verdict, reason_code, received_at)
         values ('${chain}', ?, ?, 'digest', '{}', 'token.created', 1, 'allow', 'ok', 1)`,
        chain,
        seq,
      )
    await insert(worker(), 11)
    await insert('unknown', 1)
    await insert('', 1)
    const found = await proof.findings()
    expect(found).toContain('event.altered 01900001 11–11')
    expect(found).toContain('chain.head_altered 01900001 11–11')
    expect(found).toContain('chain.unknown unknown 1–1')
    expect(found).toContain('chain.unknown  1–1')
  })

  test('an altered head in the ledger', async () => {
    await proof.run("update chains set digest = 'other' where chain = ?", worker())
    expect(await proof.findings()).toEqual(['chain.head_altered 01900001 10–10'])
    await proof.run('update chains set seq = 9 where chain = ?', worker())
    expect(await proof.findings()).toEqual(['chain.head_altered 01900001 10–10'])
    await proof.run('update chains set seq = 12 where chain = ?', worker())
    expect(await proof.findings()).toEqual(['events.missing 01900001 11–12'])
    await proof.run('delete from chains where chain = ?', worker())
    expect(await proof.findings()).toEqual(['chain.unknown 01900001 1–10'])
  })

  test("a change of the control plane's own chain", async () => {
    await proof.run("delete from events where chain = 'control-plane' and seq = 2")
    expect(await proof.findings()).toEqual(['events.missing control- 2–2'])
  })
})

describe('verification finds in the proof itself', () => {
  test('an altered checkpoint in the ledger and in the state', async () => {
    await proof.run(`update checkpoints set body = replace(body, '"number":1', '"number":7') where number = 1`)
    expect(await proof.findings()).toEqual(['checkpoint.altered 1–1'])
    await proof.run('delete from checkpoints where number = 1')
    await proof.store.state.write([{ sql: "update checkpoints set signature = 'AAAA'", args: [] }])
    expect(await proof.findings()).toEqual([
      ...['checkpoint.altered 2–2', 'checkpoint.went_back 1–2', 'checkpoint.missing 1–1'],
    ])
  })

  test('a row of the state reset to an older one', async () => {
    await proof.store.state.write([{ sql: 'update checkpoints set number = 0', args: [] }])
    expect(await proof.findings()).toEqual(['checkpoint.went_back 1–2'])
  })

  test('another key, by a noted key id or by the id in the summary', async () => {
    const other = loadSigningKey(join(proof.store.directory, 'other-key'))
    await proof.run(`update events set body = replace(body, '"allow"', '"deny"'), verdict = 'deny' where ${at(10)}`)
    const [row] = await proof.store.ledger.read<{ body: string }>(`select body from events where ${at(10)}`)
    const [before] = await proof.store.ledger.read<{ digest: string }>(`select digest from events where ${at(9)}`)
    const digest = chainNext(before?.digest ?? '', 10, row?.body ?? '')
    await proof.run(`update events set digest = ? where ${at(10)}`, digest)
    await proof.run('update chains set digest = ? where chain = ?', digest, worker())
    await proof.store.ledger.write([publishKey(other, 1)])
    await proof.run('delete from checkpoint_keys where id = ?', proof.key.id)
    await proof.run('delete from checkpoints')
    await proof.store.state.write([{ sql: 'update checkpoints set number = 0', args: [] }])
    await proof.sign(other)
    expect((await proof.findings()).every((text) => text.startsWith('rollup.differs'))).toBe(true)
    await forgetSums()
    expect(await proof.findings()).toEqual([])
    expect((await proof.verify()).at(-1)).toMatchObject({ keys: [other.id] })
    expect(await proof.findings({ pinned: [proof.key.id] })).toEqual([
      ...['key.unknown 1–1', 'key.unknown 1–1', 'key.no_checkpoint'],
    ])
  })

  test('that nothing is signed with the trusted key', async () => {
    await proof.run('delete from checkpoints')
    await proof.store.state.write([{ sql: "update checkpoints set number = 0, body = ''", args: [] }])
    expect(await proof.findings({ pinned: [proof.key.id] })).toEqual(['key.no_checkpoint', 'checkpoint.missing'])
  })

  const noneLeft = 'delete from checkpoints'
  const emptied = "update checkpoints set number = 0, body = '', key_id = '', signature = '', version = 0"

  test('the deletion of all checkpoints in both databases, even with a row of the state as at first', async () => {
    await proof.run(noneLeft)
    await proof.store.state.write([{ sql: emptied, args: [] }])
    proof.now += day
    expect(await proof.findings()).toEqual(['checkpoint.missing'])
  })

  test('checkpoints that were started anew, if it knows an earlier one', async () => {
    const [seen] = await proof.store.ledger.read<Signed>(
      'select body, key_id, signature from checkpoints where number = 1',
    )
    await proof.run(noneLeft)
    await proof.store.state.write([{ sql: emptied, args: [] }])
    for (let round = 0; round < 3; round++) {
      await proof.shipEvents(2, 1)
      await proof.sign()
    }
    expect(await proof.findings()).toEqual([])
    expect(await proof.findings({ witnesses: seen === undefined ? [] : [seen] })).toEqual(['checkpoint.begun_anew 1–1'])
  })

  test('no fault in a checkpoint that is only in the state, which the next run copies to the ledger', async () => {
    await proof.run('delete from checkpoints where number = 2')
    expect(await proof.findings()).toEqual(['checkpoint.missing 2–2'])
    proof.now -= 60_000
    expect(await proof.sign()).toBe(false)
    expect(await proof.findings()).toEqual([])
  })

  for (const [type, reason, what] of [
    ['gateway.checkpoint_regressed', 'checkpoint.went_back', 'checkpoint.seen_going_back'],
    ['gateway.instance_replaced', 'chain_fork', 'chain.parted'],
    ['gateway.instance_replaced', 'chain_lost', 'chain.parted'],
  ] as const) {
    test(`what a gateway recorded, signed or not: ${type} of ${reason}`, async () => {
      const event = proof.gatewayEvent(2, { event_type: type, reason_code: reason, verdict: 'error' })
      await proof.ship(2, [JSON.stringify(event)])
      expect(await proof.findings()).toEqual([`${what} 01900002 4–4`])
    })
  }

  test('what an earlier checkpoint shows even when a later one hides it', async () => {
    await proof.run('delete from events where chain = ? and seq > 7', worker())
    await proof.run(
      'update chains set seq = 7, digest = (select digest from events where chain = ?1 and seq = 7) where chain = ?1',
      worker(),
    )
    await proof.shipEvents(1, 1)
    await proof.shipEvents(2, 1)
    expect(await proof.sign()).toBe(true)
    expect(await proof.findings()).toEqual(['events.missing 01900001 9–10'])
    await proof.shipEvents(1, 4)
    await proof.shipEvents(2, 1)
    expect(await proof.sign()).toBe(true)
    expect(await proof.findings()).toContain('events.rewritten 01900001 6–10')
  })
})

describe('verification after retention', () => {
  const remove = () =>
    removeOldEvents({
      ...{ ledger: proof.store.ledger, key: proof.key, clock: proof.clock, log: silentLog },
      settings: { event_retention_days: retentionDays },
    })

  beforeEach(async () => {
    proof.now += (retentionDays + 1) * day
    await proof.shipEvents(1, 3)
    await proof.sign()
    expect(await remove()).toEqual({ removed: 16, finished: true })
  })

  test('accepts the remaining and later events', async () => {
    await proof.shipEvents(2, 2)
    await proof.sign()
    const lines = await proof.verify()
    expect(lines.at(-1)).toMatchObject({ findings: 0, events: 5, not_covered: 0 })
    expect(lines.find((line) => line.kind === 'chain' && line.chain === worker())).toMatchObject({ from: 10, to: 13 })
  })

  test('finds missing events that retention did not remove', async () => {
    await proof.run(`delete from events where ${at(11)}`)
    expect(await proof.findings()).toEqual(['events.missing 01900001 11–11'])
  })

  test('finds a floor that was raised, deleted or reset', async () => {
    const [former] = await proof.store.ledger.read<{ body: string }>('select body from chain_floors where chain = ?', [
      worker(),
    ])
    await proof.run(
      `update chain_floors set seq = 11, body = replace(body, '"seq":10', '"seq":11') where chain = ?`,
      worker(),
    )
    expect(await proof.findings()).toContain('floor.altered 01900001')
    await proof.run('update chain_floors set seq = 10, body = ? where chain = ?', former?.body ?? '', worker())
    expect(await proof.findings()).toEqual([])
    await proof.run('delete from chain_floors where chain = ?', worker())
    expect(await proof.findings()).toEqual(['events.missing 01900001 1–10'])
  })

  test('finds any row below the floor', async () => {
    await proof.run(`update events set seq = -9e999 where ${at(12)}`)
    expect((await proof.findings()).slice(-1)).toEqual(['events.missing 01900001 12–12'])
    expect((await proof.findings()).join()).toContain('event.inserted')
    await proof.run('update events set seq = 12 where chain = ? and seq < 0', worker())
    await proof.run(`update events set seq = 4 where ${at(11)}`)
    expect(await proof.findings()).toEqual(['event.inserted 01900001 4–4', 'events.missing 01900001 11–11'])
  })

  test('keeps retention from removing events that do not verify', async () => {
    await proof.run(`update events set body = body || ' ' where ${at(12)}`)
    proof.now += (retentionDays + 1) * day
    await remove()
    expect((await proof.findings())[0]).toBe('event.altered 01900001 12–12')
  })
})

test('finds any change to any column of any row that a checkpoint covers', async () => {
  const columns = await proof.store.ledger.read<{ name: string }>("select name from pragma_table_info('events')")
  const rows = await proof.store.ledger.read<{ position: number }>('select position from events')
  const value = fc.oneof(
    fc.string(),
    fc.integer(),
    // A whole number that JavaScript cannot hold is kept as an integer, which this test could not read back.
    fc
      .double({ noNaN: true, noDefaultInfinity: true })
      .filter((number) => !Number.isInteger(number) || Number.isSafeInteger(number)),
    fc.constantFrom('allow', 'deny', 'control-plane', 'fleet.event_quarantined', proof.worker(2)),
  )
  const tampering = fc.record({
    column: fc.constantFrom(...columns.map(({ name }) => name)),
    position: fc.constantFrom(...rows.map(({ position }) => position)),
    value,
  })
  await fc.assert(
    fc.asyncProperty(tampering, async ({ column, position, value: wanted }) => {
      const [before] = await proof.store.ledger.read('select * from events where position = ?', [position])
      try {
        await proof.run(`update events set ${column} = ? where position = ?`, wanted, position)
      } catch {
        // The table does not take this value.
        return
      }
      const now = column === 'position' ? Number(wanted) : position
      const [after] = await proof.store.ledger.read('select * from events where position = ?', [now])
      const changed = JSON.stringify(after) !== JSON.stringify(before)
      const found = await proof.findings()
      const old = before?.[column]
      await proof.run(
        `update events set ${column} = ? where position = ?`,
        typeof old === 'string' || typeof old === 'number' ? old : null,
        now,
      )
      expect(found.length > 0).toBe(changed)
    }),
    { numRuns: 150 },
  )
}, 60_000)

describe('verification finds invalid values', () => {
  const texts: [string, string][] = [
    ['a NUL behind it', '%s || char(0)'],
    ['a NUL and more behind it', "%s || char(0) || 'x'"],
    ['bytes that are no UTF-8', "cast(cast(%s as blob) || x'ff' as text)"],
  ]
  test.each(texts)('%s, in any column of an event', async (_name, change) => {
    for (const column of ['event_type', 'verdict', 'team_id', 'reason_code', 'event_id', 'digest', 'body']) {
      const [row] = await proof.store.ledger.read<{ hex: string }>(
        `select hex(${column}) as hex from events where ${at(3)}`,
      )
      await proof.run(`update events set ${column} = ${change.replace('%s', column)} where ${at(3)}`)
      expect((await proof.findings()).join()).toMatch(new RegExp(`01900001 3–3( ${column})?`))
      await proof.run(`update events set ${column} = cast(unhex(?) as text) where ${at(3)}`, row?.hex ?? '')
    }
    expect(await proof.findings()).toEqual([])
  })

  test.each(texts)('%s, in the name of a chain', async (_name, change) => {
    await proof.run(`update events set chain = ${change.replace('%s', 'chain')} where ${at(3)}`)
    const found = (await proof.findings()).map((finding) => finding.replace(/^event.inserted.*/, 'event.inserted'))
    expect(found).toEqual(['event.inserted', 'events.missing 01900001 3–3'])
  })

  test.each(texts)('%s, in a checkpoint', async (_name, change) => {
    await proof.run(`update checkpoints set body = ${change.replace('%s', 'body')} where number = 1`)
    expect(await proof.findings()).toEqual(['checkpoint.altered 1–1'])
  })

  test('integers that JavaScript cannot hold', async () => {
    await proof.run(`update events set position = 9007199254740994 where ${at(3)}`)
    expect(await proof.findings()).toEqual([
      ...['events.arrival_altered 01900001 1–5', 'event.column_altered 01900001 3–3 position'],
      'event.out_of_order 01900001 4–4',
    ])
    await proof.run(`update events set position = 3 where ${at(3)}`)
    expect(await proof.findings()).toEqual([])
    for (const seq of ['9223372036854775807', '9007199254740993', '7.3', "'x'"]) {
      await proof.run(`update events set seq = ${seq} where ${at(10)}`)
      expect((await proof.findings()).join()).toContain('event.inserted 01900001')
      await proof.run(`update events set seq = 10 where chain = ? and seq not in (1, 2, 3, 4, 5, 6, 7, 8, 9)`, worker())
    }
    await proof.shipEvents(2, 1)
    await proof.run('update events set position = 9007199254740994 where chain = ? and seq = 4', proof.worker(2))
    expect(await proof.findings()).toEqual(['event.column_altered 01900002 4–4 position'])
    await proof.run('update events set position = 99 where chain = ? and seq = 4', proof.worker(2))
    await proof.run('update chains set seq = 9223372036854775807 where chain = ?', worker())
    expect(await proof.findings()).toEqual(['chain.head_altered 01900001 10–10'])
  })
})

describe('verification of the sums behind charts', () => {
  const hour = `step = 'hour' and kind = 'all' and scope = '*'`
  const day = "step = 'day' and kind = 'token'"
  test.each([
    [`update event_rollups set requests = requests + 1000 where ${hour}`, ['hour all teams allow: requests']],
    [`update event_rollups set cost = cost + 1 where ${day}`, ['day team team token token allow: cost']],
    [`delete from event_rollups where ${hour}`, ['hour all teams allow: missing']],
    [
      `insert into event_rollups select kind, step, scope, at - 3600000, key, 'deny', 7, 0, 0, 0, null, null
      from event_rollups where ${hour}`,
      ['hour all teams deny: of no event'],
    ],
    [
      `update event_rollups set input_tokens = 7, output_tokens = output_tokens + 1
      where step = 'minute' and kind = 'reason'`,
      ['minute team team reason ok allow: input_tokens, output_tokens'],
    ],
    [
      `update event_rollups set latency = '{"1":1}' where step = 'minute' and kind = 'model'`,
      ['minute all teams model none allow: latency', 'minute team team model none allow: latency'],
    ],
    [`update event_rollups set first_token = 'garbage' where ${day}`, ['day team team token token allow: first_token']],
    [
      `update event_rollups set key = cast(x'67ff' as text) where ${day}`,
      ['day team team token null allow: of no event', 'day team team token token allow: missing'],
    ],
    [`update event_rollups set at = 9e18 where ${day}`, ['row of no time', 'day team team token token allow: missing']],
    [
      `update event_rollups set step = 'week' where ${day}`,
      ['week team team token token allow: of no event', 'day team team token token allow: missing'],
    ],
  ])('finds %s', async (sql, named) => {
    expect(await proof.findings()).toEqual([])
    await proof.run(sql)
    const found = (await proof.findings()).map((text) =>
      text.replace(/^rollup.differs /, '').replace(/ \d{4}-\S+| \d+(?= of)/, ''),
    )
    expect([...new Set(found)].toSorted()).toEqual(named.toSorted())
  })

  test('finds no tampering while events arrive', async () => {
    await Promise.all([proof.findings(), proof.shipEvents(1, 3)]).then(([found]) => expect(found).toEqual([]))
    expect(await proof.findings()).toEqual([])
  })
})
