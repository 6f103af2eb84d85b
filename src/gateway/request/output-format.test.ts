import { afterAll, beforeAll, expect, test } from 'bun:test'
import { completion, startTestGateway, type TestGateway } from '../testing/gateway.ts'
import { openSocket } from '../testing/socket.ts'

let running: TestGateway
beforeAll(async () => {
  running = await startTestGateway(() => Response.json({ ...completion, output: [] }))
})
afterAll(() => running.stop())

const schema = { name: 'answer', strict: true, schema: { type: 'object' } }

/** Formats that cannot be, as `response_format` says them, and the field that is at fault. */
const impossible: readonly [unknown, string][] = [
  ['json', ''],
  [[], ''],
  [true, ''],
  [{}, '.type'],
  [{ type: 5 }, '.type'],
  [{ type: 'yaml' }, '.type'],
  [{ type: 'json_schema' }, '.json_schema'],
  [{ type: 'json_schema', json_schema: 'answer' }, '.json_schema'],
  [{ type: 'json_schema', json_schema: { schema: {} } }, '.json_schema.name'],
  [{ type: 'json_schema', json_schema: { ...schema, name: 5 } }, '.json_schema.name'],
  [{ type: 'json_schema', json_schema: { name: 'answer' } }, '.json_schema.schema'],
  [{ type: 'json_schema', json_schema: { ...schema, schema: 'object' } }, '.json_schema.schema'],
  [{ type: 'json_schema', json_schema: { ...schema, strict: 'yes' } }, '.json_schema.strict'],
]

/** The same formats as `text.format` says them. */
const impossibleText = impossible.flatMap(([format, field]): [unknown, string][] => {
  if (field === '.json_schema') return []
  const { type, json_schema: inner } = Object(format)
  return [[inner === undefined ? format : { type, ...inner }, field.replace('.json_schema', '')]]
})

/** Bodies of each route that asks for a format, with the field that is at fault. */
const bodies = [
  ...impossible.map(([format, field]) => [
    'chat/completions',
    { messages: [], response_format: format },
    `response_format${field}`,
  ]),
  ...impossible.map(([format, field]) => [
    'responses',
    { input: 'a', response_format: format },
    `response_format${field}`,
  ]),
  ...impossibleText.map(([format, field]) => ['responses', { input: 'a', text: { format } }, `text.format${field}`]),
  ['responses', { input: 'a', text: 'json' }, 'text'],
] as [string, object, string][]

const possible = [
  null,
  { type: 'text' },
  { type: 'json_object' },
  { type: 'json_schema', json_schema: schema },
  { type: 'json_schema', json_schema: { name: 'answer', schema: {}, description: 'What to say' } },
]

const post = (route: string, body: object) =>
  fetch(`${running.url}/v1/${route}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${running.secret}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'gpt-test', ...body }),
  })

test('refuses an invalid output format with 422 and names its field', async () => {
  const { length } = running.seen
  for (const [route, body, param] of bodies) {
    const answer = await post(route, body)
    const { error } = (await answer.json()) as { error: { code: string; param: string } }
    expect([answer.status, error.code, error.param, JSON.stringify(body)]).toEqual([
      422,
      'invalid_parameter',
      param,
      JSON.stringify(body),
    ])
  }
  expect(running.seen).toHaveLength(length)
})

test('accepts a valid output format', async () => {
  for (const response_format of possible) {
    expect((await post('chat/completions', { messages: [], response_format })).status).toBe(200)
    const format = response_format?.type === 'json_schema' ? { type: 'json_schema', ...schema } : response_format
    for (const said of [{ response_format }, { text: { format } }, { response_format, text: { format: null } }]) {
      const { status } = await post('responses', { input: 'a', ...said })
      expect([status, JSON.stringify(said)]).toEqual([200, JSON.stringify(said)])
    }
  }
})

test('refuses an invalid format in a WebSocket frame and keeps the connection', async () => {
  for (const route of ['chat/completions', 'responses']) {
    const socket = await openSocket(`${running.url.replace('http', 'ws')}/v1/${route}/ws`, {
      authorization: `Bearer ${running.secret}`,
    })
    for (const [of, body, param] of bodies) {
      if (of !== route) continue
      socket.send(
        JSON.stringify({ ...(route === 'responses' && { type: 'response.create' }), model: 'gpt-test', ...body }),
      )
      const [frame = ''] = await socket.frames(1)
      expect(JSON.parse(frame)).toMatchObject({
        type: 'error',
        status: 422,
        error: { code: 'invalid_parameter', param },
      })
    }
    socket.close()
  }
})
