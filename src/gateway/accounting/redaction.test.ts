/** What records and spans have of a caller's own words where one of them is a secret. */
import { expect, test } from 'bun:test'
import { eventually } from '../../../test/support/eventually.ts'
import { systemClock } from '../../lib/clock.ts'
import { silentLog } from '../../lib/log/log.ts'
import { compilePolicySet } from '../../policies/chain.ts'
import type { Span } from '../../telemetry/span.ts'
import { createTracer } from '../../telemetry/tracer.ts'
import { completion, startTestGateway } from '../testing/gateway.ts'
import { policy } from '../testing/policies.ts'
import { maskSecrets } from './redaction.ts'

const key = `sk-proj-${'A1b2C3d4E5f6G7h8'.repeat(3)}`

test('masks Gatehouse and provider secrets anywhere in a text and nothing else', () => {
  expect(maskSecrets(`about ${key}`)).toBe('about [OPENAI_KEY]')
  for (const plain of ['gpt-4o', 'claude-sonnet-4-20250514', '0198c8a2-5b1e-7c3a-9f00-123456789abc', 'gth_short']) {
    expect(maskSecrets(plain)).toBe(plain)
  }
})

test('records no secret from a label, session, model, metadata or tool name in an event or span', async () => {
  const spans: Span[] = []
  const tracer = createTracer({
    load: async () => async (ended) => void spans.push(...ended),
    samplePercent: 100,
    random: Math.random,
    clock: systemClock,
    log: silentLog,
    flushMilliseconds: 1,
  })
  const gateway = await startTestGateway(() => Response.json(completion), {}, tracer)
  try {
    const own = gateway.worker.addToken({ metadataTrust: 'caller' })
    gateway.worker.policies = compilePolicySet([
      policy({ id: 'a', kind: 'tool-access', mode: 'monitor', config: { deny: ['gth*'] } }),
      policy({ id: 'b', kind: 'escalate', when: 'request.stream', config: { reason_code: 'a.b' } }),
    ])
    const messages = [{ role: 'user', content: 'Good morning' }]
    const metadata = { of: own, [key]: 'x' }
    const tools = [{ type: 'function', function: { name: own, parameters: {} } }]
    const body = { messages, metadata, tools, session_id: own }
    for (const model of [own, key, 'gpt-test']) {
      for (const stream of [false, true]) {
        await gateway.chat({ ...body, model, stream }, { secret: own, headers: { 'x-request-id': own } })
      }
    }
    await eventually(() => spans.length > 0)
    const { journal } = gateway.worker
    const kept = JSON.stringify([journal.outcomes(), [...journal.refused], [...journal.opened.values()], spans])
    expect(kept).toContain('[GATEHOUSE_TOKEN]')
    expect([kept.includes(own), kept.includes(key)]).toEqual([false, false])
  } finally {
    await gateway.stop()
  }
})

test('keeps the event small for a model name or metadata of any length', async () => {
  const gateway = await startTestGateway(() => Response.json(completion))
  try {
    const secret = gateway.worker.addToken({ metadataTrust: 'caller' })
    const long = 'a'.repeat(100_000)
    expect((await gateway.chat({ model: long, messages: [] }, { secret })).status).toBe(404)
    await (
      await gateway.chat({ model: 'm', messages: [], metadata: { a: long, b: 'b'.repeat(600) } }, { secret })
    ).text()
    const [unknown, answered] = gateway.worker.journal.outcomes()
    expect(unknown?.details).toMatchObject({ model: '[TOO_LONG]' })
    expect(answered?.metadata).toEqual({ a: '[TOO_LONG]', b: 'b'.repeat(512) })
  } finally {
    await gateway.stop()
  }
})

test('records no text that a policy removes from a session, metadata or tool name', async () => {
  const email = 'ann@example.com'
  const gateway = await startTestGateway(() => Response.json(completion))
  try {
    const secret = gateway.worker.addToken({ metadataTrust: 'caller' })
    gateway.worker.policies = compilePolicySet([
      policy({ id: 'a', kind: 'tool-access', config: { deny: ['*@*'], action: 'remove' } }),
      policy({ id: 'b', kind: 'pii', config: { types: ['email'], action: 'redact' }, position: 2 }),
    ])
    const tools = [{ type: 'function', function: { name: `to ${email}`, parameters: {} } }]
    const body = { model: 'gpt-test', messages: [], metadata: { [email]: email }, session_id: `of ${email}`, tools }
    await (await gateway.chat(body, { secret })).text()
    const { journal } = gateway.worker
    const kept = JSON.stringify([
      journal.outcomes(),
      journal.refused,
      [...journal.opened.values()],
      [...journal.closed],
    ])
    expect(kept).toContain('tools.to [EMAIL]')
    expect(journal.outcomes()).toMatchObject([
      { event_attribution: { session_id: 'of [EMAIL]' }, metadata: { '[EMAIL]': '[EMAIL]' } },
    ])
    expect(kept).not.toContain(email)
  } finally {
    await gateway.stop()
  }
})
