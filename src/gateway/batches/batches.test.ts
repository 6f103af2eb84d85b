/**
 * Files and batches through the official client: what is refused, what is sent, what is held and what is settled. Longer
 * than most: every case stands on one provider, whose batches end as a test says.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import OpenAI, { toFile } from 'openai'
import { completionOf, FileBatches, outputLine } from '../../../test/fakes/file-batches.ts'
import { eventually } from '../../../test/support/eventually.ts'
import { compilePolicySet } from '../../policies/chain.ts'
import { compilePrice } from '../../providers/prices/price-record.ts'
import type { GovernedToken } from '../../tokens/governed-token.ts'
import { type BatchUse, batchUseSchema } from '../../usage/batches/batch-protocol.ts'
import { InMemoryLimits } from '../../usage/testing/in-memory-limits.ts'
import { unlimited } from '../../usage/testing/unlimited.ts'
import { startTestGateway, type TestGateway } from '../testing/gateway.ts'
import { testModel, testPolicy } from '../testing/worker.ts'

/** Two dollars a million tokens in, four out: 2000 and 4000 nano-dollars a token. */
const price = compilePrice({ input_per_million: 2, output_per_million: 4 }, 'operator')
/** Of an answer with 10 tokens in and 5 out. */
const answerCost = 10 * 2000 + 5 * 4000

let running: TestGateway
let provider: FileBatches
let openai: OpenAI

const clientOf = (secret: string) => new OpenAI({ apiKey: secret, baseURL: `${running.url}/v1`, maxRetries: 0 })
const clientFor = (members: Partial<GovernedToken>) => clientOf(running.worker.addToken(members))

beforeAll(async () => {
  running = await startTestGateway((request, body) => provider.answer(request, body), {
    path_retries: 0,
    drain_seconds: 0,
    batch_line_limit: 5,
    batch_file_limit_bytes: 100_000,
    body_limit_bytes: 10_000,
  })
  running.worker.catalog.push(
    testModel({ id: 'gpt-test', price, maxOutputTokens: 50 }),
    testModel({ id: 'gpt-alias', upstreamModel: 'gpt-real' }),
  )
})
afterAll(() => running.stop())
beforeEach(() => {
  provider = new FileBatches()
  openai = clientOf(running.secret)
  running.seen.length = 0
  running.worker.policies = compilePolicySet([])
  running.worker.batches.settled.length = 0
  Object.assign(running.worker, { usageLimits: unlimited })
})

const requestOf = (customId: string, text = 'Good morning', members: object = {}) => ({
  custom_id: customId,
  method: 'POST',
  url: '/v1/chat/completions',
  body: { model: 'gpt-test', messages: [{ role: 'user', content: text }], ...members },
})
const jsonl = (...lines: readonly unknown[]) =>
  lines.map((line) => `${typeof line === 'string' ? line : JSON.stringify(line)}\n`).join('')
const upload = async (...lines: readonly unknown[]) =>
  await openai.files.create({
    file: await toFile(new TextEncoder().encode(jsonl(...lines)), 'requests.jsonl'),
    purpose: 'batch',
  })
const start = (fileId: string, client = openai) =>
  client.batches.create({ input_file_id: fileId, endpoint: '/v1/chat/completions', completion_window: '24h' })
const uploadTwo = () => upload(requestOf('one'), requestOf('two'))
/** The provider's id of its only batch. */
const made = () => [...provider.batches.keys()].at(-1) ?? ''
const lastOutcome = () => running.worker.journal.outcomes().at(-1)
const redactNames = testPolicy({
  id: 'names',
  kind: 'term-filter',
  config: { terms: ['Ada'], action: 'redact' },
  stages: ['pre_request', 'post_request'],
})

async function refusal(call: Promise<unknown>): Promise<[number | undefined, unknown, string]> {
  try {
    await call
  } catch (thrown) {
    if (thrown instanceof OpenAI.APIError) return [thrown.status, thrown.code, thrown.message]
    throw thrown
  }
  throw new Error('The call was not refused')
}

async function settledUse(): Promise<BatchUse> {
  const { settled } = running.worker.batches
  await eventually(() => expect(settled).toHaveLength(1))
  const [use] = settled
  if (use === undefined) throw new Error('Nothing was settled')
  return use
}

describe('a file of requests', () => {
  test('is checked, sent on with the names that the provider knows, and has a sealed id', async () => {
    const file = await upload(
      requestOf('one', 'Hello', { model: 'gpt-alias' }),
      '',
      requestOf('two', 'Bye', { model: 'gpt-alias' }),
    )
    expect(file.id).toMatch(/^file_[0-9a-f]+$/)
    const [[id = '', content = '']] = [[...(provider.files.entries().next().value ?? [])]]
    expect(content.trim().split('\n')).toHaveLength(2)
    expect(provider.lines(id).map(({ custom_id, body }) => [custom_id, body.model])).toEqual([
      ['one', 'gpt-real'],
      ['two', 'gpt-real'],
    ])
    expect((await openai.files.retrieve(file.id)).id).toBe(file.id)
    expect(await (await openai.files.content(file.id)).text()).toBe(content)
    expect(lastOutcome()).toMatchObject({ details: { route: 'GET /v1/files/{id}/content', model: 'gpt-alias' } })
    await openai.files.delete(file.id)
    expect(provider.files.size).toBe(0)
    expect((await refusal(openai.files.retrieve(file.id)))[0]).toBe(404)
  })

  test('belongs to the owner of its token', async () => {
    const file = await uploadTwo()
    const same = clientFor({})
    expect((await same.files.retrieve(file.id)).id).toBe(file.id)
    const other = clientFor({ ownerKind: 'user', ownerId: 'somebody' })
    running.seen.length = 0
    expect(await refusal(other.files.retrieve(file.id))).toEqual([404, 'stored_object_not_found', expect.any(String)])
    expect((await refusal(openai.files.retrieve('file-1')))[0]).toBe(404)
    expect(running.seen).toHaveLength(0)
  })

  test('is refused as a whole, naming the line, and nothing of it is sent', async () => {
    const cases: [readonly unknown[], number, string, string][] = [
      [[requestOf('one'), 'no json'], 400, 'invalid_json', 'Line 2: '],
      [[{ ...requestOf('one'), method: 'GET' }], 422, 'invalid_parameter', 'Line 1: method must be POST'],
      [[{ ...requestOf('one'), url: '/v1/nothing' }], 422, 'invalid_parameter', 'Line 1: url'],
      [[{ ...requestOf('one'), extra: 1 }], 422, 'invalid_parameter', 'Line 1: A line has custom_id'],
      [[{ ...requestOf(''), custom_id: 7 }], 422, 'invalid_parameter', 'Line 1: custom_id'],
      [[requestOf('one'), requestOf('one')], 422, 'invalid_parameter', 'Line 2: custom_id is that of an earlier line'],
      [
        [requestOf('one'), requestOf('two', 'x', { model: 'gpt-alias' })],
        422,
        'invalid_parameter',
        'Line 2: the model differs',
      ],
      [[requestOf('one', 'x', { stream: true })], 422, 'invalid_parameter', 'Line 1: stream must be false'],
      [[requestOf('one', 'x'.repeat(20_000))], 413, 'request_too_large', 'Line 1: The line is longer'],
      [
        ['1', '2', '3', '4', '5', '6'].map((id) => requestOf(id)),
        413,
        'request_too_large',
        'more lines than the limit of 5',
      ],
      [[], 422, 'invalid_parameter', 'The file has no requests'],
      [
        ['{"custom_id":"a","custom_id":"b","method":"POST","url":"/v1/chat/completions","body":{}}'],
        ...([400, 'invalid_json', 'Line 1: The line names one of its members twice'] as const),
      ],
    ]
    for (const [lines, status, code, words] of cases) {
      const [gotStatus, gotCode, message] = await refusal(upload(...lines))
      expect([gotStatus, gotCode, message]).toEqual([status, code, expect.stringContaining(words)])
    }
    expect(running.seen).toHaveLength(0)
  })

  test('is refused when it is too large, no form, or of another purpose', async () => {
    const post = (body: FormData | string, headers: Record<string, string> = {}) =>
      fetch(`${running.url}/v1/files`, {
        method: 'POST',
        body,
        headers: { authorization: `Bearer ${running.secret}`, ...headers },
      })
    const formOf = (content: string, fields: Record<string, string>) => {
      const form = new FormData()
      for (const [name, value] of Object.entries(fields)) form.set(name, value)
      form.set('file', new File([content], 'requests.jsonl'))
      return form
    }
    const good = jsonl(requestOf('one'))
    expect((await post('{}', { 'content-type': 'application/json' })).status).toBe(415)
    expect((await post(formOf(good, { purpose: 'assistants' }))).status).toBe(422)
    expect((await post(formOf(good, { purpose: 'batch', other: '1' }))).status).toBe(422)
    expect((await post(formOf(`${good}${' \n'.repeat(80_000)}`, { purpose: 'batch' }))).status).toBe(413)
    expect((await post('--b\r\nbroken', { 'content-type': 'multipart/form-data; boundary=b' })).status).toBe(400)
    expect(running.seen).toHaveLength(0)
  })

  test('passes bindings of the token and policies line by line, redacted as policies say', async () => {
    const bound = clientFor({ modelFilter: ['other-*'] })
    const file = await toFile(new TextEncoder().encode(jsonl(requestOf('one'))), 'r.jsonl')
    expect(await refusal(bound.files.create({ file, purpose: 'batch' }))).toEqual([
      403,
      'tokens.model_not_allowed',
      expect.stringContaining('Line 1: '),
    ])
    running.worker.policies = compilePolicySet([
      redactNames,
      testPolicy({ id: 'stop', kind: 'term-filter', config: { terms: ['secret plan'], action: 'block' }, position: 2 }),
    ])
    const [status, code, message] = await refusal(upload(requestOf('one'), requestOf('two', 'a secret plan')))
    expect([status, code]).toEqual([400, 'content_policy_violation'])
    expect(message).toContain('Line 2: ')
    const refused = running.worker.journal.refused.findLast(
      ({ event_type: type }) => type === 'gateway.request.outcome',
    )
    expect(refused).toMatchObject({ verdict: 'block', details: { route: 'POST /v1/files' } })
    expect(running.seen).toHaveLength(0)
    await upload(requestOf('one', 'Hello Ada'))
    expect(provider.lines('file-1')[0]?.body.messages).toEqual([{ role: 'user', content: 'Hello [TERM]' }])
    expect(lastOutcome()).toMatchObject({ verdict: 'redact' })
  })
})

test('a policy that asks a person refuses a line and an answer, and nobody is asked', async () => {
  const asking = (stage: 'pre_request' | 'post_request') =>
    testPolicy({
      ...{ id: 'ask', kind: 'term-filter', config: { terms: ['secret plan'], action: 'escalate' } },
      stages: [stage],
    })
  running.worker.policies = compilePolicySet([asking('pre_request')])
  const [status, code, message] = await refusal(upload(requestOf('one', 'a secret plan')))
  expect([status, code]).toEqual([403, 'policy.escalated'])
  expect(message).toContain('Line 1: A policy asks a person about this, and a line of a file cannot wait')
  const refused = running.worker.journal.refused.filter(({ details }) => details?.escalation !== undefined)
  expect(refused).toEqual([])
  running.worker.policies = compilePolicySet([asking('post_request')])
  const batch = await start((await uploadTwo()).id)
  provider.end(made(), { lines: [outputLine('one', 'a secret plan')] })
  const { output_file_id: id } = await openai.batches.retrieve(batch.id)
  const text = await (await openai.files.content(id ?? '')).text()
  expect(JSON.parse(text)).toMatchObject({ custom_id: 'one', response: null, error: { code: 'policy.escalated' } })
  expect(text).not.toContain('secret plan')
})

describe('lists', () => {
  const noteMade = () => {
    const { made: object } = lastOutcome()?.details ?? {}
    running.worker.batches.made.push(Object(object))
  }

  test('show the files and batches of the owner as they are at the provider, in pages, without those that are gone', async () => {
    running.worker.batches.made.length = 0
    const files: string[] = []
    for (let number = 0; number < 3; number++) {
      files.unshift((await uploadTwo()).id)
      noteMade()
    }
    expect((await openai.files.list()).data.map(({ id }) => id)).toEqual(files)
    const paged: string[] = []
    for await (const { id } of openai.files.list({ limit: 2, purpose: 'batch' })) paged.push(id)
    expect(paged).toEqual(files)
    await openai.files.delete(files[1] ?? '')
    expect((await openai.files.list({ limit: 2 })).data.map(({ id }) => id)).toEqual([files[0] ?? '', files[2] ?? ''])
    expect((await openai.files.list({ purpose: 'vision' })).data).toEqual([])
    const batch = await start(files[0] ?? '')
    noteMade()
    expect((await openai.batches.list()).data).toMatchObject([
      { id: batch.id, input_file_id: files[0], status: 'in_progress' },
    ])
    const other = clientFor({ ownerKind: 'user', ownerId: 'somebody' })
    expect([(await other.files.list()).data, (await other.batches.list()).data]).toEqual([[], []])
    const narrow = clientFor({ modelFilter: ['other-*'] })
    expect((await narrow.files.list()).data).toEqual([])
    const outcome = running.worker.journal.refused.findLast(({ details }) => details?.route === 'GET /v1/batches')
    expect(outcome).toMatchObject({ verdict: 'allow', reason_code: 'ok' })
  })

  test('refuse a query that they do not know', async () => {
    const status = async (query: string) =>
      (await fetch(`${running.url}/v1/files?${query}`, { headers: { authorization: `Bearer ${running.secret}` } }))
        .status
    expect(await Promise.all(['limit=0', 'order=asc', 'other=1', 'after=file_00'].map(status))).toEqual([
      422, 422, 422, 404,
    ])
  })
})

describe('a batch', () => {
  test('holds the worst case of its lines, and its settlement says what it used', async () => {
    const limits = new InMemoryLimits({ 'token/t/money': 10_000_000, 'token/t/requests': 5 })
    Object.assign(running.worker, { usageLimits: limits })
    const accounts = [{ id: 't', maxRequests: 5, maxBudget: 10_000_000, rateLimitRpm: null, rateLimitTpm: null }]
    openai = clientFor({ accounts })
    const file = await uploadTwo()
    const batch = await start(file.id)
    expect([batch.id, batch.input_file_id]).toEqual([expect.stringMatching(/^batch_[0-9a-f]+$/), file.id])
    const lineBound = (JSON.stringify(requestOf('one').body).length + 64 + 16) * 2000 + 50 * 4000
    const outcome = lastOutcome()
    expect(outcome).toMatchObject({
      details: { batch: { id: made(), family: 'chat', lines: 2, bound: 2 * lineBound } },
      settlements: [
        { account: 'token/t/requests', amount: 2 },
        { account: 'token/t/money', amount: 2 * lineBound },
      ],
    })
    expect(limits.balances.get('token/t/requests')).toBe(3)
    expect((await openai.batches.retrieve(batch.id)).status).toBe('in_progress')
    expect(running.worker.batches.settled).toEqual([])
    provider.end(made(), { lines: [outputLine('one', 'Hi'), outputLine('two', 'Bye')] })
    const ended = await openai.batches.retrieve(batch.id)
    expect(ended.input_file_id).toBe(file.id)
    expect(await settledUse()).toMatchObject({
      ...{ hold: outcome?.exchange_id, status: 'completed', requests: 2, cost: 2 * answerCost, whole: false },
      ...{ estimated: false, input_tokens: 20, output_tokens: 10, notes: [] },
    })
    const output = await (await openai.files.content(ended.output_file_id ?? '')).text()
    expect(
      output
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line).custom_id),
    ).toEqual(['one', 'two'])
    await openai.batches.retrieve(batch.id)
    await Bun.sleep(50)
    expect(running.worker.batches.settled).toHaveLength(1)
  })

  test('of a model whose price list knows batches costs half', async () => {
    const lines = ['one', 'two'].map((id) => requestOf(id, 'Hi', { model: 'gpt-4o-mini', max_tokens: 10 }))
    const batch = await start((await upload(...lines)).id)
    const listed = await running.chat({ model: 'gpt-4o-mini', messages: [{ role: 'user', content: 'Hi' }] })
    expect(listed.status).toBe(404)
    provider.end(made(), { lines: [outputLine('one', 'Hi'), outputLine('two', 'Hi')] })
    await openai.batches.retrieve(batch.id)
    // 0.15 and 0.60 dollars a million tokens.
    expect((await settledUse()).cost).toBe((2 * (10 * 150 + 5 * 600)) / 2)
  })

  test('is refused when a limit cannot hold all of it, and nothing is sent', async () => {
    const file = await uploadTwo()
    const accounts = [{ id: 't', maxRequests: 5, maxBudget: 10_000, rateLimitRpm: null, rateLimitTpm: null }]
    const client = clientFor({ accounts })
    for (const [left, code] of [
      [{ 'token/t/money': 10_000, 'token/t/requests': 5 }, 'usage_authorization_budget_exceeded'],
      [{ 'token/t/money': 10_000_000, 'token/t/requests': 1 }, 'usage_authorization_request_limit_exceeded'],
    ] as const) {
      const limits = new InMemoryLimits(left)
      limits.refuseWith = 'short'
      Object.assign(running.worker, { usageLimits: limits })
      running.seen.length = 0
      expect((await refusal(start(file.id, client)))[1]).toBe(code)
      expect(running.seen).toHaveLength(0)
    }
  })

  test('that the provider refuses gives everything back, and one whose making is unknown keeps it', async () => {
    const limits = new InMemoryLimits({ 'token/t/money': 10_000_000, 'token/t/requests': 5 })
    Object.assign(running.worker, { usageLimits: limits })
    const accounts = [{ id: 't', maxRequests: 5, maxBudget: 10_000_000, rateLimitRpm: null, rateLimitTpm: null }]
    openai = clientFor({ accounts })
    const file = await uploadTwo()
    provider.onCreate = () => Response.json({ error: { message: 'no', type: 'x' } }, { status: 400 })
    expect((await refusal(start(file.id)))[0]).toBe(400)
    expect([...limits.balances.values()]).toEqual([10_000_000, 5])
    running.seen.length = 0
    provider.onCreate = () => new Response('not json')
    expect((await refusal(start(file.id)))[0]).toBe(502)
    expect(running.seen.filter(({ request }) => request.url.endsWith('/batches'))).toHaveLength(1)
    expect(limits.balances.get('token/t/requests')).toBe(3)
  })

  test('needs the rules by which its file was checked', async () => {
    const file = await uploadTwo()
    running.worker.policies = compilePolicySet([redactNames])
    expect((await refusal(start(file.id))).slice(0, 2)).toEqual([409, 'batch_file_outdated'])
    running.worker.policies = compilePolicySet([])
    const wrong = openai.batches.create({
      input_file_id: file.id,
      endpoint: '/v1/embeddings',
      completion_window: '24h',
    })
    expect((await refusal(wrong)).slice(0, 2)).toEqual([422, 'invalid_parameter'])
    expect((await refusal(start('file-1'))).slice(0, 2)).toEqual([404, 'stored_object_not_found'])
  })

  test('that is cancelled, expired or failed is charged for what was answered', async () => {
    const batch = await start((await uploadTwo()).id)
    expect((await openai.batches.cancel(batch.id)).status).toBe('cancelling')
    provider.end(made(), { status: 'cancelled', lines: [outputLine('one', 'Hi')] })
    await openai.batches.retrieve(batch.id)
    expect(await settledUse()).toMatchObject({ status: 'cancelled', requests: 1, cost: answerCost })
    running.worker.batches.settled.length = 0
    const failed = await start((await uploadTwo()).id)
    provider.end(made(), { status: 'failed', request_counts: { total: 0, completed: 0, failed: 0 } })
    await openai.batches.retrieve(failed.id)
    expect(await settledUse()).toMatchObject({ status: 'failed', requests: 0, cost: 0 })
  })

  test('that never ends stays charged in full after three days, and is not settled before', async () => {
    await start((await uploadTwo()).id)
    const { batch: described } = lastOutcome()?.details ?? {}
    const day = 86_400_000
    const open = { ...Object(described), hold: lastOutcome()?.exchange_id, created_at: Date.now() - 2 * day }
    running.worker.batches.open.push(open)
    await eventually(() => expect(running.seen.some(({ request }) => request.url.endsWith(`/${made()}`))).toBe(true))
    expect(running.worker.batches.settled).toEqual([])
    running.worker.batches.open[0] = { ...open, hold: Bun.randomUUIDv7(), created_at: Date.now() - 3 * day - 1000 }
    await start((await uploadTwo()).id)
    expect(await settledUse()).toMatchObject({ whole: true, status: 'unknown', requests: 2 })
    running.worker.batches.open.length = 0
  })

  test('is followed to its end although nobody asks for it', async () => {
    await start((await uploadTwo()).id)
    const { batch: described } = lastOutcome()?.details ?? {}
    const open = { ...Object(described), hold: lastOutcome()?.exchange_id, created_at: Date.now() }
    running.worker.batches.open.push(open)
    provider.end(made(), { lines: [outputLine('one', 'Hi'), outputLine('two', 'Hi')] })
    expect(await settledUse()).toMatchObject({ requests: 2, cost: 2 * answerCost })
    running.worker.batches.open.length = 0
  })
})

describe('the output of a batch that is not as it should be', () => {
  const useOf = async (members: Parameters<FileBatches['end']>[1]) => {
    const batch = await start((await uploadTwo()).id)
    provider.end(made(), members)
    await openai.batches.retrieve(batch.id)
    return await settledUse()
  }
  const { bound } = { bound: (JSON.stringify(requestOf('one').body).length + 64 + 16) * 2000 + 50 * 4000 }

  test('counts an answer that comes twice once', async () => {
    const lines = [outputLine('one', 'Hi'), outputLine('one', 'Hi'), outputLine('two', 'Hi')]
    const use = await useOf({ lines, request_counts: { completed: 2 } })
    expect(use).toMatchObject({ requests: 2, cost: 2 * answerCost, notes: ['batch.line_repeated'] })
  })

  test('charges an answer that is missing, or has no usage, its share of the worst case', async () => {
    const use = await useOf({ lines: [outputLine('one', 'Hi')], request_counts: { completed: 2 } })
    expect(use).toMatchObject({
      requests: 2,
      cost: answerCost + bound,
      estimated: true,
      notes: ['batch.lines_missing'],
    })
    running.worker.batches.settled.length = 0
    const silent = outputLine('two', 'Hi', { response: { status_code: 200, body: completionOf('Hi', null) } })
    const other = await useOf({ lines: [outputLine('one', 'Hi'), silent] })
    expect(other).toMatchObject({ requests: 2, cost: answerCost + bound, notes: ['batch.usage_missing'] })
  })

  test('believes what the provider says all lines took about those that are missing', async () => {
    const use = await useOf({
      lines: [outputLine('one', 'Hi')],
      request_counts: { completed: 2 },
      usage: { input_tokens: 40, output_tokens: 6 },
    })
    expect(use).toMatchObject({ cost: answerCost + 30 * 2000 + 4000, input_tokens: 40, output_tokens: 6 })
  })

  test('books answers to requests that nobody made, and says so', async () => {
    const lines = ['one', 'two', 'three'].map((id) => outputLine(id, 'Hi'))
    expect(await useOf({ lines })).toMatchObject({ requests: 3, cost: 3 * answerCost, notes: ['batch.lines_unknown'] })
    running.worker.batches.settled.length = 0
    const many = Array.from({ length: 1000 }, (_, number) => outputLine(`r${number}`, 'Hi'))
    expect(await useOf({ lines: many })).toMatchObject({ requests: 104, cost: 104 * answerCost })
  })

  test('charges a share for usage that no answer can have, and says what the control plane accepts', async () => {
    const huge = { prompt_tokens: 9e15, completion_tokens: 9e15, total_tokens: 9e15 }
    const lines = ['one', 'two'].map((id) =>
      outputLine(id, 'Hi', { response: { status_code: 200, body: completionOf('Hi', huge) } }),
    )
    const use = await useOf({ lines })
    expect(batchUseSchema.parse(use)).toMatchObject({ requests: 2, cost: 2 * bound, notes: ['batch.usage_missing'] })
    running.worker.batches.settled.length = 0
    const members = { lines: lines.slice(0, 1), usage: { input_tokens: 9e15, output_tokens: 9e15 } }
    const reported = await useOf({ ...members, request_counts: { completed: 2 } })
    expect(batchUseSchema.parse(reported)).toMatchObject({ cost: 9e15, input_tokens: 9e15 })
  })

  test('charges a line that is too long or no JSON its share, and passes an error in its place', async () => {
    const batch = await start((await uploadTwo()).id)
    running.worker.policies = compilePolicySet([redactNames])
    provider.end(made(), { lines: [outputLine('one', 'x'.repeat(20_000)), 'no json'] })
    const { output_file_id: id } = await openai.batches.retrieve(batch.id)
    expect(await settledUse()).toMatchObject({ requests: 2, cost: 2 * bound, estimated: true })
    const lines = (await (await openai.files.content(id ?? '')).text()).trim().split('\n')
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      { custom_id: 'one', response: null, error: { code: 'upstream_provider_error' } },
      { custom_id: null, response: null, error: { code: 'upstream_provider_error' } },
    ])
  })

  test('leaves everything charged when the provider has the batch or its output no more', async () => {
    const batch = await start((await uploadTwo()).id)
    const origin = made()
    provider.end(origin, { lines: [outputLine('one', 'Hi')] })
    const { output_file_id: id } = await openai.batches.retrieve(batch.id)
    await settledUse()
    running.worker.batches.settled.length = 0
    const gone = await start((await uploadTwo()).id)
    const details = lastOutcome()
    provider.batches.clear()
    expect((await refusal(openai.batches.retrieve(gone.id)))[0]).toBe(404)
    running.worker.batches.open.push({
      ...Object(details?.details?.batch),
      hold: details?.exchange_id,
      created_at: Date.now(),
    })
    expect(await settledUse()).toMatchObject({ whole: true, status: 'gone' })
    running.worker.batches.open.length = 0
    expect(id).toMatch(/^file_/)
  })
})

test('policies judge each answer of the output before it leaves: redacted in its line, or an error in its place', async () => {
  running.worker.policies = compilePolicySet([
    redactNames,
    testPolicy({
      ...{ id: 'stop', kind: 'term-filter', config: { terms: ['secret plan'], action: 'block' } },
      ...{ stages: ['post_request'], position: 2 },
    }),
  ])
  const batch = await start((await uploadTwo()).id)
  provider.end(made(), {
    lines: [outputLine('one', 'Ada says hi'), outputLine('two', 'a secret plan'), outputLine('three', 'Good day')],
    errors: [outputLine('four', '', { response: null, error: { code: 'x', message: 'Ada was not found' } })],
  })
  const ended = await openai.batches.retrieve(batch.id)
  const text = await (await openai.files.content(ended.output_file_id ?? '')).text()
  expect(text).not.toContain('Ada')
  expect(text).not.toContain('secret plan')
  const lines = text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  expect(lines[0].response.body.choices[0].message.content).toBe('[TERM] says hi')
  expect(lines[1]).toMatchObject({ custom_id: 'two', response: null, error: { code: 'content_policy_violation' } })
  expect(lines[2].response.body.choices[0].message.content).toBe('Good day')
  expect(lastOutcome()).toMatchObject({ verdict: 'block' })
  const errors = await (await openai.files.content(ended.error_file_id ?? '')).text()
  expect(errors).not.toContain('Ada')
})
