import { afterAll, beforeAll, expect, test } from 'bun:test'
import { noAttribution } from '../../events/event.ts'
import { pendingRollups } from '../../events/rollups/pending-rollups.ts'
import { testEvent } from '../../events/testing/ledger.ts'
import { type TemporaryControlPlane, temporaryControlPlane } from '../../members/testing/temporary-control-plane.ts'

let plane: TemporaryControlPlane
beforeAll(async () => {
  plane = await temporaryControlPlane()
})
afterAll(() => plane.remove())

const path = '/v1/catalog/providers'
const call = (method: string, to: string, body?: unknown) =>
  plane.call(method, to, { token: plane.adminToken, ...(body === undefined ? {} : { body }) })
const failedTests = async () => {
  const { status, json } = await call('GET', '/v1/catalog/failed-provider-tests')
  expect(status).toBe(200)
  return json.failed_tests
}

/** A provider at an address where all is refused until it `works`. */
async function testedProvider(name: string) {
  let works = false
  const upstream = Bun.serve({
    port: 0,
    fetch: async (request) => {
      if (!works) return Response.json({ error: { message: 'No' } }, { status: 401 })
      if (request.method === 'GET') return Response.json({ data: [{ id: 'm' }] })
      const { stream } = JSON.parse(await request.text())
      const text = { role: 'assistant', content: 'ok' }
      const made = { id: 'c', created: 1, model: 'm' }
      const choice = { index: 0, finish_reason: 'stop' }
      const usage = { prompt_tokens: 5, completion_tokens: 1, total_tokens: 6 }
      if (stream !== true) {
        return Response.json({ ...made, object: 'chat.completion', choices: [{ ...choice, message: text }], usage })
      }
      const chunk = { ...made, object: 'chat.completion.chunk', choices: [{ ...choice, delta: text }] }
      const frames = `data: ${JSON.stringify(chunk)}\n\ndata: [DONE]\n\n`
      return new Response(frames, { headers: { 'content-type': 'text/event-stream' } })
    },
  })
  const { json } = await call('POST', path, { name, kind: 'openai', base_url: `${upstream.url.origin}/v1` })
  const { id } = json
  const run = async () => (await call('POST', `${path}/${id}/test`, { model: 'm' })).json.ok
  return {
    id,
    run,
    repair() {
      works = true
    },
    [Symbol.asyncDispose]: () => upstream.stop(true),
  }
}

test('lists a provider whose last test failed, until one succeeds', async () => {
  await using tested = await testedProvider('broken')
  expect(await failedTests()).toEqual([])
  expect(await tested.run()).toBe(false)
  expect(await failedTests()).toEqual([{ provider_id: tested.id, name: 'broken', at: expect.any(String) }])
  tested.repair()
  expect(await tested.run()).toBe(true)
  expect(await failedTests()).toEqual([])
})

test('leaves out a provider that has answered a request since, and one that was deleted', async () => {
  await using answering = await testedProvider('answering')
  await using deleted = await testedProvider('deleted')
  for (const { run } of [answering, deleted]) expect(await run()).toBe(false)
  const before = await failedTests()
  expect(before.map(({ name }: { name: string }) => name).toSorted()).toEqual(['answering', 'deleted'])
  const at = Date.parse(before[0].at) + 3_600_000
  const outcome = testEvent({
    timestamp: new Date(at).toISOString(),
    verdict: 'redact',
    event_attribution: noAttribution,
    details: { model: 'm', provider: 'answering', latency_ms: 1, first_token_ms: null },
  })
  await plane.store.ledger.write(pendingRollups([outcome], at))
  expect((await failedTests()).map(({ name }: { name: string }) => name)).toEqual(['deleted'])
  expect((await call('DELETE', `${path}/${deleted.id}`)).status).toBe(200)
  expect(await failedTests()).toEqual([])
  expect(await plane.store.ledger.read('select provider_id from provider_tests')).toMatchObject([
    { provider_id: expect.any(String) },
    { provider_id: answering.id },
  ])
})

test('leaves out a test that failed more than 30 days ago', async () => {
  await using tested = await testedProvider('forgotten')
  expect(await tested.run()).toBe(false)
  expect(await failedTests()).toMatchObject([{ name: 'forgotten' }])
  plane.clock.advance(31 * 86_400_000)
  expect(await failedTests()).toEqual([])
})
