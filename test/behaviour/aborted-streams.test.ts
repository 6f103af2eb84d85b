/**
 * A small version of `test/load/generator/streams.ts`: callers that leave in the middle, many at once and one after
 * another.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { abortStreams, type DrippingProvider, startDrippingProvider } from '../load/generator/streams.ts'
import { createToken } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'
import { type Gatehouse, startGatehouse } from '../support/harness.ts'
import { eventsInLedger } from '../support/recorded.ts'

setDefaultTimeout(120_000)

let provider: DrippingProvider
let gatehouse: Gatehouse
beforeAll(async () => {
  provider = startDrippingProvider(50)
  gatehouse = await startGatehouse({ upstream: provider })
}, 240_000)
afterAll(async () => {
  await gatehouse?.stop()
  await provider?.stop()
})

test('aborts 300 streams, each with one outcome, and leaves nothing running at the provider', async () => {
  const token = (await createToken(gatehouse)).token_value
  await abortStreams(gatehouse.gatewayUrl, token, 300)
  expect(provider.begun()).toBe(300)
  await eventually(() => expect(provider.running()).toBe(0))
  await eventually(() => {
    const outcomes = eventsInLedger(gatehouse).filter(({ event_type }) => event_type === 'gateway.request.outcome')
    expect(outcomes.map(({ reason_code }) => reason_code)).toEqual(Array.from({ length: 300 }, () => 'client.left'))
    expect(new Set(outcomes.map(({ exchange_id }) => exchange_id)).size).toBe(300)
  })
})
