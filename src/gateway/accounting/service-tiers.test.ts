/** What an exchange costs in the service tier that its answer names. */
import { expect, test } from 'bun:test'
import { completion, startTestGateway } from '../testing/gateway.ts'

const messages = [{ role: 'user', content: 'Good morning' }]
const usage = { prompt_tokens: 100, completion_tokens: 100 }

/** The cost, in dollars, of a request to `gpt-4o`, whose list price is 2.50 and 10 dollars a million. */
async function costOf(request: object, answer: () => Response): Promise<number> {
  const running = await startTestGateway(answer)
  const response = await running.chat({ model: 'gpt-4o', messages, ...request })
  await response.text()
  const cost = running.worker.journal.outcomes()[0]?.event_cost_attribution?.cost
  await running.stop()
  return Number(cost)
}

const list = (100 * 2.5 + 100 * 10) / 1_000_000
const whole = (members: object) => () => Response.json({ ...completion, usage, ...members })
const streamed = (tier: string) => () => {
  const frame = { id: 'c', object: 'chat.completion.chunk', created: 1, model: 'gpt-4o', service_tier: tier }
  const frames = [
    { ...frame, choices: [{ index: 0, delta: { content: 'Hello' }, finish_reason: 'stop' }] },
    { ...frame, choices: [], usage },
  ]
  const text = `${frames.map((each) => `data: ${JSON.stringify(each)}\n\n`).join('')}data: [DONE]\n\n`
  return new Response(text, { headers: { 'content-type': 'text/event-stream' } })
}

test('prices by the tier that the answer names, whatever the request asked for', async () => {
  expect(await costOf({}, whole({ service_tier: 'priority' }))).toBeCloseTo(1.7 * list, 9)
  expect(await costOf({ service_tier: 'flex' }, whole({ service_tier: 'flex' }))).toBeCloseTo(list / 2, 9)
  expect(await costOf({ service_tier: 'priority' }, whole({ service_tier: 'default' }))).toBeCloseTo(list, 9)
  expect(await costOf({ stream: true }, streamed('priority'))).toBeCloseTo(1.7 * list, 9)
})

test('prices by the requested tier when the answer names none, unless that tier is cheaper', async () => {
  expect(await costOf({ service_tier: 'priority' }, whole({}))).toBeCloseTo(1.7 * list, 9)
  expect(await costOf({ service_tier: 'flex' }, whole({}))).toBeCloseTo(list, 9)
})
