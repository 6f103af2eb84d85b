/** What policies make of requests in shapes that their language does not foresee. */
import { afterEach, expect, test } from 'bun:test'
import { question, type TestGateway } from './test-gateway.ts'
import { policy, startPoliced } from './test-policies.ts'

let running: TestGateway | null = null
afterEach(async () => {
  await running?.stop()
  running = null
})

async function start(...given: Parameters<typeof startPoliced>): Promise<TestGateway> {
  running = await startPoliced(...given)
  return running
}

test('a text in a shape that only a lenient provider reads is found and replaced there', async () => {
  const gateway = await start([
    policy({ id: 'a', kind: 'term-filter', config: { terms: ['swordfish'], action: 'redact' } }),
  ])
  const shapes = [
    ['messages', ['swordfish']],
    ['messages', { 0: { role: 'user', content: ['swordfish'] } }],
    ['tools', [[{ function: { name: 'swordfish', note: 'swordfish' } }]]],
    ['arguments', { swordfish: ['swordfish'] }],
    ['a/b#1', [{ cache_control: { note: 'swordfish' } }]],
  ] as const
  for (const [member, shape] of shapes) {
    const answer = await gateway.chat({ ...question, [member]: shape })
    expect([answer.status, answer.headers.get('x-service-verdict')]).toEqual([200, 'REDACT'])
    expect(gateway.seen.at(-1)?.body).toContain(
      `"${member}":${JSON.stringify(shape).replaceAll('swordfish', '[TERM]')}`,
    )
  }
})
