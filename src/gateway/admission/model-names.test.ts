import { afterEach, expect, test } from 'bun:test'
import { compilePolicySet } from '../../policies/chain.ts'
import { completion, startTestGateway, type TestGateway } from '../testing/gateway.ts'
import { testModel, testPolicy, testProvider } from '../testing/worker.ts'

let running: TestGateway | null = null
afterEach(async () => {
  await running?.stop()
  running = null
})

const condition = (when: string) => ({
  kind: 'condition',
  when,
  config: { verdict: 'deny', reason_code: 'test.denied' },
})

/** Has the test's upstream be a provider of another kind. */
function serveBy({ worker }: TestGateway, kind: string): void {
  const [{ baseUrl } = testProvider()] = worker.upstreams
  worker.upstreams[0] = testProvider({ id: 'p', kind, baseUrl, headers: { region: 'eu-west-1' } })
}

/** The status of a request for a model under one policy. */
async function statusOf(model: string, members: Partial<Parameters<typeof testPolicy>[0]>, kind: string) {
  running = await startTestGateway(() => Response.json(completion))
  const { worker, chat, stop } = running
  serveBy(running, kind)
  worker.policies = compilePolicySet([testPolicy({ id: 'p', kind: 'audit', config: {}, ...members })])
  const { status } = await chat({ model, messages: [{ role: 'user', content: 'hello' }] })
  await stop()
  running = null
  return status
}

test('denies a model under every name when a policy denies it under one', async () => {
  const deny = (...deny_models: string[]) => ({ kind: 'model-access', config: { deny_models } })
  for (const name of ['gemini-3-pro', 'models/gemini-3-pro', 'models/Gemini-3-Pro']) {
    for (const members of [
      deny('gemini-3-pro'),
      deny('models/gemini-3-pro'),
      { ...condition('true'), targets: { models: ['gemini-3-*'] } },
    ])
      expect([name, await statusOf(name, members, 'gemini')]).toEqual([name, 403])
  }
  for (const when of ['model.id == "gemini-3-pro"', 'request.model == "gemini-3-pro"'])
    for (const name of ['models/gemini-3-pro', 'Gemini-3-Pro'])
      expect([when, name, await statusOf(name, condition(when), 'gemini')]).toEqual([when, name, 403])
  expect(await statusOf('models/gemini-3-pro', deny('gemini-3-pro'), 'openai')).toBe(403)
  const arn = 'arn:aws:bedrock:eu-west-1:123456789012:inference-profile/eu.anthropic.claude-4:0'
  for (const name of ['anthropic.claude-4:0', 'eu.anthropic.claude-4:0', arn])
    expect([name, await statusOf(name, deny('anthropic.claude-*'), 'bedrock')]).toEqual([name, 403])
  expect(await statusOf(arn, deny('arn:aws:bedrock:*'), 'bedrock')).toBe(403)
  expect(await statusOf('eu.anthropic.claude-4:0', deny('us.anthropic.claude-*'), 'bedrock')).not.toBe(403)
})

test('denies a model under a prefixed name when a policy denies its bare name, and the reverse', async () => {
  const deny = (...deny_models: string[]) => ({ kind: 'model-access', config: { deny_models } })
  for (const name of ['upstream/gpt-4o', 'upstream/GPT-4o', 'upstream/openai/gpt-4o', 'gpt-4o', 'openai/gpt-4o'])
    expect([name, await statusOf(name, deny('gpt-4o'), 'openrouter')]).toEqual([name, 403])
  expect(await statusOf('upstream/gpt-4o', deny('upstream/gpt-4o'), 'openai')).toBe(403)
  expect(await statusOf('upstream/gpt-4o', deny('upstream/*'), 'openai')).toBe(403)
  expect(await statusOf('upstream/gpt-4o', condition('model.id == "gpt-4o"'), 'openai')).toBe(403)
  expect(await statusOf('upstream/gpt-4o', condition('request.model == "gpt-4o"'), 'openai')).toBe(403)
  const targeted = { ...condition('true'), targets: { models: ['gpt-4o'] } }
  expect(await statusOf('upstream/gpt-4o', targeted, 'openai')).toBe(403)
  const allow = { kind: 'model-access', config: { allow_models: ['gpt-4o'] } }
  expect(await statusOf('upstream/gpt-4o', allow, 'openai')).toBe(200)
  expect(await statusOf('upstream/o3', allow, 'openai')).toBe(403)
  expect(await statusOf('upstream/upstream/gpt-4o', allow, 'openai')).toBe(403)
})

test('sends the provider the name without the prefix and records the name that policies read', async () => {
  running = await startTestGateway(() => Response.json(completion))
  serveBy(running, 'openai')
  await (await running.chat({ model: 'upstream/gpt-4o', messages: [{ role: 'user', content: 'a' }] })).text()
  expect(running.worker.journal.outcomes()).toMatchObject([{ details: { model: 'gpt-4o' } }])
  expect(running.seen.map(({ body }) => JSON.parse(body).model)).toEqual(['gpt-4o'])
})

test('denies a catalog record that is another name of a denied model', async () => {
  running = await startTestGateway(() => Response.json(completion))
  const { worker, chat } = running
  worker.upstreams.push(testProvider({ id: 'g', name: 'g', kind: 'gemini' }))
  worker.catalog.push(testModel({ id: 'models/gemini-3-pro', providerId: 'g' }))
  worker.policies = compilePolicySet([
    testPolicy({ id: 'p', kind: 'model-access', config: { deny_models: ['gemini-3-pro'] } }),
  ])
  expect((await chat({ model: 'models/gemini-3-pro', messages: [] })).status).toBe(403)
})

test('records in the event the model name that policies read', async () => {
  running = await startTestGateway(() => Response.json({}))
  serveBy(running, 'gemini')
  await (await running.chat({ model: 'models/Gemini-3-Pro', messages: [{ role: 'user', content: 'a' }] })).text()
  expect(running.worker.journal.outcomes()).toMatchObject([{ details: { model: 'gemini-3-pro' } }])
  expect(running.seen.map(({ request }) => new URL(request.url).pathname)).toEqual([
    '/v1beta/models/gemini-3-pro:generateContent',
  ])
})

test('refuses a field by which the provider would choose another model and names the field', async () => {
  running = await startTestGateway(() => Response.json(completion))
  for (const member of ['models', 'fallbacks', 'preset']) {
    const answer = await running.chat({ model: 'm', messages: [], [member]: ['dear'] })
    expect(answer.status).toBe(422)
    expect(await answer.json()).toMatchObject({ error: { code: 'invalid_parameter', param: member } })
  }
  expect(running.seen).toEqual([])
})
