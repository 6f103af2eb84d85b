import { afterEach, beforeEach, expect, test } from 'bun:test'
import { sinkLags } from './sink-lag.ts'
import { SinkFixture } from './testing/sink-fixture.ts'

const minute = 60_000
const hour = 60 * minute
let sinks: SinkFixture
beforeEach(async () => {
  sinks = await SinkFixture.start()
})
afterEach(() => sinks.remove())

async function lag() {
  const [found] = await sinkLags(sinks.proof.store.ledger, sinks.proof.now)
  return [found?.lagRecords, found?.lagSeconds]
}

test('the lag of a sink that begins now counts nothing that happened before it, also where segments were merged', async () => {
  const { proof } = sinks
  for (let shipped = 0; shipped < 5; shipped += 1) await proof.shipEvents(1, 8)
  proof.now += hour
  await sinks.add({ kind: 'http' }, {}, 41)
  expect(await lag()).toEqual([0, 0])
  proof.now += minute
  await proof.shipEvents(1, 2)
  await proof.merge(256, 6)
  proof.now += minute
  expect(await lag()).toEqual([2, 60])
  await sinks.deliver()
  expect(await lag()).toEqual([0, 0])
})

test('a gateway that ships late makes no sink late for the time before it was made', async () => {
  await sinks.add({ kind: 'http' })
  const { proof } = sinks
  const happened = new Date(proof.now - hour).toISOString()
  await proof.ship(1, [JSON.stringify(proof.gatewayEvent(1, { timestamp: happened }))])
  proof.now += 2 * minute
  expect(await lag()).toEqual([1, 120])
})

test('the lag of a sink that begins with the oldest record counts all of them', async () => {
  await sinks.proof.shipEvents(1, 7)
  await sinks.add({ kind: 'http' })
  sinks.proof.now += minute
  expect(await lag()).toEqual([7, 60])
})
