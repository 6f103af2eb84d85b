/** Rows in ClickHouse itself, embedded, in the table that the handbook shows. */
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { z } from 'zod'
import { type ClickHouseServer, startClickHouse } from '../../../test/fakes/clickhouse.ts'
import { SinkFixture } from '../testing/sink-fixture.ts'

let sinks: SinkFixture
let clickhouse: ClickHouseServer
beforeEach(async () => {
  sinks = await SinkFixture.start()
  clickhouse = startClickHouse()
})
afterEach(async () => {
  await clickhouse.stop()
  await sinks.remove()
})

const ask = async (statement: string) => {
  const answer = await fetch(clickhouse.url, { method: 'POST', body: statement })
  const text = await answer.text()
  if (!answer.ok) throw new Error(text)
  return text.trim()
}

test('fills the table of the handbook, leaves out what comes twice, and says why a table is not right', async () => {
  const handbook = await Bun.file(new URL('../../handbook/sinks.md', import.meta.url)).text()
  const [, statement = ''] = /```sql\n([\s\S]*?)```/.exec(handbook) ?? []
  const id = await sinks.add({ kind: 'clickhouse', format: 'events', url: clickhouse.url })
  await sinks.proof.shipEvents(1, 30)
  const details = { model: 'gpt', provider: 'openai', status: 200, latency_ms: 12.5 }
  const denied = sinks.proof.gatewayEvent(1, { verdict: 'deny', reason_code: 'it\'s \\ " odd', details })
  await sinks.proof.ship(1, [JSON.stringify(denied)])
  const runner = sinks.runner('one', { fetch })
  await sinks.deliver(runner, 3)
  expect((await sinks.delivery(id)).error).toMatch(/gatehouse_events.* does(n't| not) exist/)
  await ask(statement)
  await sinks.deliver(runner, 3)
  expect(await sinks.delivery(id)).toMatchObject({ error: null, delivered: 31, refused: 0 })
  // The acknowledgement was lost: the same parcel comes again.
  await sinks.proof.run('update sink_deliveries set position = 1')
  await sinks.deliver(runner, 3)
  expect(await ask('SELECT count() FROM gatehouse_events FINAL')).toBe('31')
  const row = await ask(
    `SELECT reason_code, model, status, latency_ms, cost, event FROM gatehouse_events FINAL
      WHERE verdict = 'deny' FORMAT JSONEachRow`,
  )
  const found = z.looseObject({ event: z.string() }).parse(JSON.parse(row))
  expect(found).toMatchObject({
    reason_code: denied.reason_code,
    model: 'gpt',
    status: 200,
    latency_ms: 12.5,
    cost: null,
  })
  expect(JSON.parse(found.event)).toEqual(denied)
})
