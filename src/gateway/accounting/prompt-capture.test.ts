/** What a record keeps of a request's text, and what it must not. */

import { afterEach, expect, test } from 'bun:test'
import { z } from 'zod'
import type { TestGateway } from '../testing/gateway.ts'
import { policy, startPoliced } from '../testing/policies.ts'

let running: TestGateway | null = null
afterEach(async () => {
  await running?.stop()
  running = null
})
const start = async (...given: Parameters<typeof startPoliced>) => {
  running = await startPoliced(...given)
  return running
}

test('records the request text when the setting asks for it, bounded and without personal data or secrets', async () => {
  const escalating = policy({
    id: 'a',
    kind: 'escalate',
    when: 'request.model == "gpt-test"',
    config: { reason_code: 'a.b' },
  })
  const content = `Write to ann@example.com or +1-984-182-0190 about 4111 1111 1111 1111: ${'é'.repeat(400)} bob@example.com`
  const ask = async (settings: object) => {
    const gateway = await start([escalating], undefined, settings)
    await gateway.chat({ model: 'gpt-test', messages: [{ role: 'user', content }] })
    const events = [...gateway.worker.journal.refused].flat()
    await running?.stop()
    return events
  }
  const without = await ask({})
  expect(without.length).toBeGreaterThan(1)
  for (const event of without) expect(event.prompt_redacted).toBeUndefined()
  const cut = await ask({ capture_prompt_bytes: 100 })
  const kept = cut.flatMap(({ event_type, prompt_redacted }) =>
    prompt_redacted === undefined ? [] : [[event_type, prompt_redacted]],
  )
  const shortened = expect.stringMatching(/^user: Write to \[EMAIL\] or \[PHONE\] about \[CARD\]: é+$/)
  expect(kept).toEqual([
    ['decision', shortened],
    ['gateway.request.outcome', shortened],
  ])
  expect(Buffer.byteLength(String(kept[0]?.[1]))).toBeLessThanOrEqual(100)
  expect(JSON.stringify(await ask({ capture_prompt_bytes: 10_000 }))).toMatch(/é \[EMAIL\]"/)
})

test('leaves out a finding that the cut of the captured text would split', async () => {
  const gateway = await start([], undefined, { capture_prompt_bytes: 2000 })
  const addresses = `x@${'a'.repeat(33)}.com `.repeat(60)
  await gateway.chat({
    model: 'gpt-test',
    messages: [{ role: 'user', content: `${addresses}${'y'.repeat(608)} ann@example.com` }],
  })
  const [outcome] = gateway.worker.journal.outcomes()
  expect(outcome?.prompt_redacted).toContain('[EMAIL]')
  expect(outcome?.prompt_redacted).not.toMatch(/ann|example/)
})

test('captures no text that policies of the chain block or redact, even if they did not run', async () => {
  const terms = (id: string, term: string, action: string, model: string) =>
    policy({ id, kind: 'term-filter', config: { terms: [term], action }, targets: { models: [model] } })
  const escalate = { kind: 'escalate', when: 'request.model == "asks"', config: { reason_code: 'a.b' } }
  const gateway = await start(
    [
      policy({ id: 'a', ...escalate }),
      terms('b', 'nightingale', 'block', '*'),
      terms('c', 'falcon', 'redact', '*'),
      policy({
        id: 'd',
        kind: 'condition',
        when: 'request.text.contains("osprey")',
        config: { verdict: 'block', reason_code: 'a.c' },
      }),
    ],
    undefined,
    { capture_prompt_bytes: 2000 },
  )
  const content = 'Project nightingale, operation falcon'
  const spelled = String.raw`{"to":"zoe\u0040private.example","card":4111111111111111,"of":"f\u0061lcon"}`
  const call = { id: '1', type: 'function', function: { name: 'f', arguments: spelled } }
  const kept = async (model: string, message: object) => {
    const { journal } = gateway.worker
    await gateway.chat({ model, messages: [message] })
    const events = [...journal.refused.splice(0).flat(), ...journal.outcomes().slice(-1)]
    return events.find(({ prompt_redacted }) => prompt_redacted !== undefined)?.prompt_redacted ?? null
  }
  expect(await kept('asks', { role: 'user', content })).toBe('user: Project [TERM], operation [TERM]')
  expect(await kept('gpt-test', { role: 'user', content })).toBe('user: Project [TERM], operation [TERM]')
  expect(await kept('gpt-test', { role: 'user', content: 'An osprey' })).toBeNull()
  expect(await kept('gpt-test', { role: 'assistant', tool_calls: [call] })).toBe(
    'assistant: {"to":"[EMAIL]","card":"[CARD]","of":"[TERM]"}',
  )
})

test('captures no text of a request that no webhook policy was asked about', async () => {
  const terms = policy({ id: 'a', kind: 'term-filter', config: { terms: ['falcon'], action: 'block' } })
  const hook = policy({ id: 'b', kind: 'webhook', config: { url: 'https://127.0.0.1:1/' } })
  for (const [policies, text] of [
    [[terms, hook], null],
    [[terms], 'user: [TERM]'],
  ] as const) {
    const gateway = await start([...policies], undefined, { capture_prompt_bytes: 2000 })
    await gateway.chat({ model: 'gpt-test', messages: [{ role: 'user', content: 'falcon' }] })
    expect([...gateway.worker.journal.refused].flat().at(-1)?.prompt_redacted ?? null).toBe(text)
    await running?.stop()
  }
})

test('captures the text of a request that a policy escalates where the policy says so, and of no other', async () => {
  const escalating = policy({
    ...{ id: 'a', kind: 'escalate', when: 'request.text.contains("transfer")' },
    config: { reason_code: 'a.b', capture_escalated: true },
  })
  const gateway = await start([escalating])
  for (const content of ['transfer 5 to ann@example.com', 'nothing']) {
    await gateway.chat({ model: 'gpt-test', messages: [{ role: 'user', content }] })
  }
  const texts = gateway.worker.journal.outcomes().map(({ prompt_redacted }) => prompt_redacted)
  expect(texts.toSorted()).toEqual(['user: transfer 5 to [EMAIL]', undefined])
})

test('names the tools that an escalated answer calls, with their arguments where the policy captures them', async () => {
  const call = (name: string, args: object) => ({
    ...{ id: name, type: 'function' },
    function: { name, arguments: JSON.stringify(args) },
  })
  const calls = [call('transfer', { to: 'ann@example.com', sum: 5 }), call('close_account', {})]
  const answer = () =>
    Response.json({
      ...{ id: 'c', object: 'chat.completion', model: 'gpt-test' },
      choices: [
        { index: 0, message: { role: 'assistant', content: null, tool_calls: calls }, finish_reason: 'tool_calls' },
      ],
      usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
    })
  const noticesOf = async (capture_escalated: boolean) => {
    const escalating = policy({
      ...{ id: 'a', kind: 'escalate', stages: ['pre_response'] },
      ...{ when: 'response.tool_calls.exists(t, t == "transfer")', config: { reason_code: 'a.b', capture_escalated } },
    })
    const gateway = await start([escalating], answer)
    await gateway.chat({ model: 'gpt-test', messages: [{ role: 'user', content: 'pay' }] })
    const events = [...gateway.worker.journal.closed.values()].flat()
    await running?.stop()
    return events.flatMap(({ details }) => (details?.escalation === undefined ? [] : [details.escalation]))
  }
  const tools = ['transfer', 'close_account']
  expect(await noticesOf(false)).toMatchObject([{ calls: tools.map((tool) => ({ tool, arguments: null })) }])
  expect(await noticesOf(true)).toMatchObject([
    {
      calls: [
        { tool: 'transfer', arguments: '{"to":"[EMAIL]","sum":5}' },
        { tool: 'close_account', arguments: '{}' },
      ],
    },
  ])
})

test('the text of an answer that waits is shown without personal data, bounded, and only where the policy says so', async () => {
  const content = `write to ann@example.com ${'x'.repeat(3000)}`
  const answer = () =>
    Response.json({
      ...{ id: 'c', object: 'chat.completion', model: 'gpt-test' },
      choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
    })
  const answersOf = async (capture_escalated: boolean) => {
    const escalating = policy({
      ...{ id: 'a', kind: 'escalate', stages: ['pre_response'] },
      ...{ when: 'response.text.contains("write")', config: { reason_code: 'a.b', capture_escalated } },
    })
    const gateway = await start([escalating], answer)
    await gateway.chat({ model: 'gpt-test', messages: [{ role: 'user', content: 'whom?' }] })
    const events = [...gateway.worker.journal.closed.values()].flat()
    await running?.stop()
    return events.flatMap(({ details }) => (details?.escalation === undefined ? [] : [details.escalation]))
  }
  expect(await answersOf(false)).toMatchObject([{ sent: true }])
  expect((await answersOf(false))[0]).not.toHaveProperty('answer')
  const [notice] = z.array(z.looseObject({ answer: z.string() })).parse(await answersOf(true))
  expect(notice?.answer).toStartWith('assistant: write to [EMAIL] xxx')
  expect(notice?.answer).toHaveLength(1024)
})
