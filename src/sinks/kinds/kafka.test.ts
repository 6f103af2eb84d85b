import { afterEach, beforeEach, expect, spyOn, test } from 'bun:test'
import { FakeKafka } from '../testing/fake-kafka.ts'
import { SinkFixture } from '../testing/sink-fixture.ts'

let sinks: SinkFixture
let broker: FakeKafka
beforeEach(async () => {
  sinks = await SinkFixture.start()
  broker = await FakeKafka.start('audit')
})
afterEach(async () => {
  await sinks.remove()
  broker.stop()
})

const kafka = (topic: string) => ({ kafka: { topic, mechanism: 'plain' } as const })

test('sends messages with the chain as their key, so that a partition has a chain in its order', async () => {
  await sinks.proof.shipEvents(1, 40)
  await sinks.proof.shipEvents(2, 40)
  await sinks.proof.shipEvents(1, 20)
  const id = await sinks.add({ kind: 'kafka', format: 'records', url: broker.url }, kafka('audit'))
  await sinks.deliver()
  expect(await sinks.delivery(id)).toMatchObject({ position: 101, delivered: 100, error: null })
  expect(broker.messages).toHaveLength(100)
  for (const gateway of [1, 2]) {
    const own = broker.messages.filter(({ key }) => key === sinks.proof.worker(gateway))
    expect(own).toHaveLength(gateway === 1 ? 60 : 40)
    expect(new Set(own.map(({ partition }) => partition)).size).toBe(1)
    expect(own.every(({ value, headers }) => JSON.parse(value).event_id === headers.event_id)).toBe(true)
  }
})

test('sets no timer while nothing waits for a broker', async () => {
  const warnings: string[] = []
  const note = ({ name }: Error) => warnings.push(name)
  process.on('warning', note)
  const { Kafka, logLevel } = await import('kafkajs')
  const client = new Kafka({ brokers: [broker.url.replace('kafka://', '')], logLevel: logLevel.NOTHING })
  const producer = client.producer()
  await producer.connect()
  const timers = spyOn(globalThis, 'setTimeout')
  try {
    await Bun.sleep(100)
    // Without its patch kafkajs sets one each millisecond.
    expect(timers.mock.calls.length).toBeLessThan(10)
    expect(warnings).toEqual([])
  } finally {
    timers.mockRestore()
    process.off('warning', note)
    await producer.disconnect()
  }
})

test('sends a parcel again whose acknowledgement did not arrive', async () => {
  broker.breaksBeforeAnswers = 2
  await sinks.proof.shipEvents(1, 5)
  const id = await sinks.add({ kind: 'kafka', format: 'events', url: broker.url }, kafka('audit'))
  await sinks.deliver(sinks.runner(), 6)
  expect(await sinks.delivery(id)).toMatchObject({ failures: 0 })
  expect(broker.messages.length).toBeGreaterThan(5)
  expect(new Set(broker.messages.map(({ headers }) => headers.event_id)).size).toBe(5)
}, 30_000)

test('a topic that is not there is a failure of the sink', async () => {
  await sinks.proof.shipEvents(1, 1)
  const id = await sinks.add({ kind: 'kafka', format: 'events', url: broker.url }, kafka('other'))
  await sinks.deliver(sinks.runner(), 2)
  expect(await sinks.delivery(id)).toMatchObject({ position: 1, delivered: 0 })
  expect((await sinks.delivery(id)).error).toMatch(/topic/)
}, 30_000)
