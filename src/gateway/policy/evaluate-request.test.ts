/** What policies make of requests in shapes that their language does not foresee. */
import { afterEach, expect, test } from 'bun:test'
import { question, type TestGateway } from '../testing/gateway.ts'
import { policy, startPoliced } from '../testing/policies.ts'

let running: TestGateway | null = null
afterEach(async () => {
  await running?.stop()
  running = null
})

async function start(...given: Parameters<typeof startPoliced>): Promise<TestGateway> {
  running = await startPoliced(...given)
  return running
}

test('finds and replaces text in a shape that only lenient providers read', async () => {
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

test('removes a tool nested in a second list or in an object in place of the list', async () => {
  const removing = policy({ id: 'a', kind: 'tool-access', config: { deny: ['rm'], action: 'remove' } })
  const when = 'request.tools.exists(name, name == "cp")'
  const refusing = policy({ id: 'b', kind: 'condition', when, config: { verdict: 'deny', reason_code: 'x' } })
  const gateway = await start([removing, refusing])
  const tool = (name: string) => ({ type: 'function', function: { name } })
  const sentWith = async (tools: unknown) => {
    const { status } = await gateway.chat({ ...question, tools, tool_choice: 'auto' })
    return status === 200 ? JSON.parse(gateway.seen.at(-1)?.body ?? '').tools : status
  }
  expect(await sentWith([[tool('rm'), tool('ls')], { 0: { 0: tool('ls') } }, tool('ls')])).toEqual([
    { 0: { 0: tool('ls') } },
    tool('ls'),
  ])
  for (const tools of [{ 0: tool('rm') }, [{ 0: [tool('rm')] }], { 0: { 0: tool('rm'), 1: tool('ls') } }]) {
    expect(await sentWith(tools)).toBeUndefined()
  }
  for (const tools of [{ 0: tool('cp') }, [[[tool('cp')]]]]) expect(await sentWith(tools)).toBe(403)
})

test('gives a condition the team of the events where a token is bound to none', async () => {
  const when = 'token.team_id == "team-default"'
  const gateway = await start([
    policy({ id: 'a', kind: 'condition', when, config: { verdict: 'deny', reason_code: 'x' } }),
  ])
  expect((await gateway.chat(question)).status).toBe(403)
})
