import { afterEach, expect, test } from 'bun:test'
import { question, type TestGateway } from '../testing/gateway.ts'
import { eventStream, frame, policy, startPoliced, streamOf } from '../testing/policies.ts'
import { openSocket } from '../testing/socket.ts'

let running: TestGateway | null = null
afterEach(async () => {
  await running?.stop()
  running = null
})

const look = (action: string) =>
  policy({ id: 'a', kind: 'pii', stages: ['post_request'], config: { types: ['email'], action } })

async function connected(action: string, answer: () => Response) {
  const gateway = await startPoliced([look(action)], answer)
  running = gateway
  const open = (path: string) =>
    openSocket(`${gateway.url.replace('http', 'ws')}${path}`, { authorization: `Bearer ${gateway.secret}` })
  return { gateway, open }
}

/** All frames of an answer, up to one of these. */
async function answerOf(
  { frames }: { frames(count: number): Promise<string[]> },
  ...last: RegExp[]
): Promise<string[]> {
  const all: string[] = []
  while (!last.some((end) => end.test(all.at(-1) ?? ''))) all.push(...(await frames(1)))
  return all
}

test('sends no part of blocked text over a WebSocket, however it is split, and keeps the connection', async () => {
  const text = 'to ann@example.com, now'
  let at = 0
  const { gateway, open } = await connected('block', () => {
    return new Response(streamOf(text.slice(0, at), text.slice(at)), eventStream)
  })
  const socket = await open('/v1/chat/completions/ws')
  for (at = 1; at < text.length; at++) {
    socket.send(JSON.stringify(question))
    const answer = await answerOf(socket, /"type":"error"/)
    expect(answer.join()).not.toContain('ann')
    expect(JSON.parse(answer.at(-1) ?? '')).toMatchObject({
      status: 400,
      error: { code: 'content_policy_violation' },
      verdictan: { verdict: 'BLOCK', reason_code: 'policy.pii' },
    })
  }
  expect(gateway.worker.journal.outcomes()).toHaveLength(text.length - 1)
  socket.close()
})

test('inspects a provider error over a WebSocket, alone and within a stream', async () => {
  const error = { message: 'bad ann@example.com', code: 'x' }
  const delta = { type: 'response.output_text.delta', output_index: 0, content_index: 0, delta: 'so far' }
  let answer = () => Response.json({ error }, { status: 400 })
  const { open } = await connected('redact', () => answer())
  const socket = await open('/v1/responses/ws')
  const ask = JSON.stringify({ type: 'response.create', model: 'gpt-test', input: 'Good morning' })
  socket.send(ask)
  expect(JSON.parse((await socket.frames(1))[0] ?? '')).toMatchObject({
    status: 400,
    error: { message: 'bad [EMAIL]' },
  })
  answer = () => new Response(frame(delta) + frame({ type: 'error', ...error }), eventStream)
  socket.send(ask)
  const streamed = await answerOf(socket, /"type":"error"/)
  expect(JSON.parse(streamed.at(-1) ?? '')).toMatchObject({ message: 'bad [EMAIL]' })
  socket.close()
})

test('says over a WebSocket who decides, and goes on with the conversation after it', async () => {
  const ask = policy({
    ...{ id: 'a', kind: 'escalate', stages: ['pre_request'], config: { reason_code: 'review' } },
    when: '!request.text.contains("instead")',
  })
  const gateway = await startPoliced([ask], () => new Response(streamOf('done'), eventStream))
  running = gateway
  const socket = await openSocket(`${gateway.url.replace('http', 'ws')}/v1/responses`, {
    ...{ authorization: `Bearer ${gateway.secret}`, 'user-agent': 'codex_exec/0.169.0' },
  })
  const create = { type: 'response.create', model: 'gpt-test', store: false }
  socket.send(JSON.stringify({ ...create, input: 'open the vault', client_metadata: { session_id: 's-1' } }))
  const waiting = await answerOf(socket, /"type":"response.completed"/)
  const { response } = JSON.parse(waiting.at(-1) ?? '')
  const [{ content }] = response.output
  expect(content[0].text).toContain('gatehouse escalation claim')
  expect(gateway.worker.journal.outcomes().at(-1)).toMatchObject({
    verdict: 'escalate',
    event_attribution: { client: 'codex', session_id: 's-1' },
  })
  socket.send(JSON.stringify({ ...create, previous_response_id: response.id, input: 'say hello instead' }))
  await answerOf(socket, /done/, /"type":"error"/)
  expect(JSON.parse(gateway.seen.at(-1)?.body ?? '{}')).toMatchObject({
    input: [{ content: 'open the vault' }, { role: 'assistant', content }, { content: 'say hello instead' }],
  })
  socket.close()
})
