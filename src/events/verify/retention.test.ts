/** Verification of a log from which retention has removed segments. */
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { alterLine, positionOf } from '../testing/alter-log.ts'
import { retentionDays, TestProof } from '../testing/proof.ts'

const day = 86_400_000
let proof: TestProof
const worker = () => proof.worker(1)

/** Positions 1–16 were removed: ten of worker 1, three of worker 2, three of the control plane; 17–19 are worker 1's. */
beforeEach(async () => {
  proof = await TestProof.start()
  await proof.shipEvents(1, 5)
  await proof.shipEvents(2, 3)
  await proof.record(3)
  await proof.sign()
  await proof.shipEvents(1, 5)
  await proof.sign()
  proof.now += (retentionDays + 1) * day
  await proof.shipEvents(1, 3)
  await proof.sign()
  expect(await proof.retain()).toEqual({ removed: 16, finished: true })
  expect(await proof.findings()).toEqual([])
})
afterEach(() => proof.store.remove())

test('accepts the remaining and later records', async () => {
  await proof.shipEvents(2, 2)
  await proof.sign()
  const lines = await proof.verify()
  expect(lines.at(-1)).toMatchObject({ findings: 0, records: 5, not_covered: 0 })
  expect(lines.find((line) => line.kind === 'chain' && line.chain === worker())).toMatchObject({ from: 10, to: 13 })
})

test('finds missing records that retention did not remove', async () => {
  for (const table of ['event_blocks', 'segment_facets', 'segment_chains']) await proof.run(`delete from ${table}`)
  await proof.run('delete from event_segments')
  expect(await proof.findings()).toEqual(['segment.missing 17–19', 'events.missing 01900001 11–13'])
})

test('finds a floor that was raised, deleted or reset', async () => {
  const [former] = await proof.store.ledger.read<{ body: string; signature: string }>(
    'select body, signature from chain_floors where chain = ?',
    [worker()],
  )
  await proof.run(
    `update chain_floors set seq = 11, body = replace(body, '"seq":10', '"seq":11') where chain = ?`,
    worker(),
  )
  expect(await proof.findings()).toContain('floor.altered 01900001')
  await proof.run('update chain_floors set seq = 10, body = ? where chain = ?', former?.body ?? '', worker())
  expect(await proof.findings()).toEqual([])
  await proof.run('delete from chain_floors where chain = ?', worker())
  expect(await proof.findings()).toEqual([
    ...['log.head_altered removed_until', 'segment.missing 7–16', 'events.missing 01900001 1–10'],
  ])
})

test('finds a removed segment that was put back', async () => {
  const { ledger } = proof.store
  await proof.run('insert into event_segments select 5, records, received_at, header, ids from event_segments')
  expect((await proof.findings()).join()).toMatch(/segment\.|event\.inserted/)
  await proof.run('delete from event_segments where first_position = 5')
  expect(await ledger.read('select 1 from event_segments')).toHaveLength(1)
  expect(await proof.findings()).toEqual([])
})

test('finds another instant up to which events were removed', async () => {
  await proof.run('update event_log set removed_until = removed_until - 1')
  expect(await proof.findings()).toEqual(['log.head_altered removed_until'])
  await proof.run('update event_log set removed_until = removed_until + 2')
  expect(await proof.findings()).toEqual(['log.head_altered removed_until'])
})

test('keeps retention from removing records that do not verify', async () => {
  const position = await positionOf(proof.store.ledger, worker(), 12)
  await alterLine(proof.store.ledger, position, (line) => ({ ...line, text: `${line.text} ` }))
  proof.now += (retentionDays + 1) * day
  expect(await proof.retain()).toEqual({ removed: 0, finished: true })
  expect(await proof.findings()).toEqual(['event.altered 01900001 11–13'])
})

test('begins at the checkpoint before a given time', async () => {
  await proof.shipEvents(1, 2)
  await proof.sign()
  expect((await proof.verify({ since: proof.now - 30_000 })).at(-1)).toMatchObject({ findings: 0, records: 2 })
})
