/** A libSQL server gives rows in another way than a file does: what somebody has damaged there is read all the same. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { chainStart } from '../../src/events/log/chain.ts'
import { publishKey } from '../../src/events/proof/checkpoint-key.ts'
import { conditionsOfAll } from '../../src/events/query/filters.ts'
import { readEventPage } from '../../src/events/query/query.ts'
import { TestProof } from '../../src/events/testing/proof.ts'
import { openRemoteDatabase } from '../../src/store/remote.ts'
import { migrateLedger } from '../../src/store/schema/migrate.ts'
import { type Sqld, startSqld } from '../support/sqld.ts'

let server: Sqld
let proof: TestProof
beforeAll(async () => {
  server = await startSqld()
  proof = await TestProof.start()
  proof.store.ledger.close()
  proof.store.ledger = await openRemoteDatabase({ url: server.url, token: server.token, name: 'ledger' })
  await migrateLedger(proof.store.ledger)
  await proof.store.ledger.write([publishKey(proof.key, proof.now)])
  await proof.shipEvents(1, 4)
  await proof.sign()
})
afterAll(async () => {
  proof.store.remove()
  await server[Symbol.asyncDispose]()
})

test('names NULs, invalid text, large integers and damaged bodies, and pages go on', async () => {
  expect(await proof.findings()).toEqual([])
  for (const change of ["digest_before || char(0) || 'x'", "cast(x'61ff' as text)"]) {
    await proof.run(`update segment_chains set digest_before = ${change}`)
    expect(await proof.findings()).toEqual(['segment.index_altered 1–4 segment_chains'])
  }
  await proof.run('update segment_chains set digest_before = ?', chainStart(proof.worker(1)))
  await proof.run('update segment_chains set last_seq = 9007199254740994')
  expect(await proof.findings()).toEqual(['segment.index_altered 1–4 segment_chains'])
  await proof.run('update segment_chains set last_seq = 4')
  await proof.run("update event_blocks set body = x'00'")
  expect(await proof.findings()).toEqual(['events.damaged 01900001 1–4'])
  await proof.shipEvents(1, 2)
  const { events } = await readEventPage(proof.store.ledger, {
    ...{ filters: { since: '1d' }, since: 0, order: 'newest', limit: 100, cursor: undefined, clock: proof.clock },
    conditions: conditionsOfAll({ teams: 'every', ownTokens: [] }),
  })
  expect(events.map(({ reason_code }) => reason_code)).toEqual(['ok', 'ok', 'event.damaged'])
})
