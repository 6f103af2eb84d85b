import { expect, test } from 'bun:test'
import { Failure } from '../../failure.ts'
import { WorkBudgetExceeded } from '../../inspection/work-budget.ts'
import { compileWhen } from './condition.ts'
import { ModelView, type PolicyContext, RequestView, ResponseView, TokenView } from './context.ts'
import { holds } from './long-searches.ts'

const slots = [
  { member: 'messages', kind: 'content', role: 'system', text: 'Be brief', replace() {} },
  { member: 'messages', kind: 'content', role: 'user', text: 'aaab', replace() {} },
] as const

const context: PolicyContext = {
  request: new RequestView({
    family: 'chat',
    model: 'gpt-4o',
    stream: false,
    sessionId: null,
    texts: () => slots,
    body: { tools: [{ type: 'function', function: { name: 'get_weather' } }, { type: 'web_search' }] },
    headers: new Headers({ 'X-Team': 'red', authorization: 'Bearer secret' }),
  }),
  response: new ResponseView({ status: 200, texts: () => slots, toolCalls: () => ['get_weather'] }),
  token: new TokenView({
    id: 't',
    purpose: 'general',
    roles: ['member'],
    teamId: 'team1',
    userId: null,
    gatewayId: null,
    metadata: { plan: 'free' },
  }),
  model: new ModelView('gpt-4o', 'openai'),
  now: new Date('2026-05-06T07:08:09Z'),
}

const callOf = (given: Record<string, unknown>): PolicyContext => ({
  ...context,
  request: new RequestView({
    ...{ family: 'mcp', model: 'bank__pay', stream: false, sessionId: null, texts: () => [] },
    body: { method: 'tools/call', params: { name: 'bank__pay', arguments: given }, tools: [{ name: 'bank__pay' }] },
    headers: new Headers(),
  }),
  response: null,
})

test.each([
  'request.tool.name == "bank__pay" && request.tool.arguments.amount > 100',
  'request.tool.arguments.amount == 150 && request.tool.arguments["to"].startsWith("DE")',
  'has(request.tool.arguments.amount) && !has(request.tool.arguments.memo)',
  'request.tool.arguments.lines.exists(line, line.sum > 99.5)',
  '"urgent" in request.tool.arguments.tags',
  'request.tool.arguments.to.matches("^DE[0-9]+$")',
  'request.tool.arguments.id > 9007199254740000',
])('reads the arguments of the called MCP tool: %s', (expression) => {
  const given = { amount: 150, to: 'DE123', lines: [{ sum: 50 }, { sum: 100 }], tags: ['urgent'] }
  const called = callOf({ ...given, id: JSON.rawJSON('9007199254740993') })
  expect(compileWhen(expression, ['pre_request'])(called)).toBe(true)
})

test('a condition on an argument that is missing or of another type fails, so that when_broken decides', () => {
  const condition = compileWhen('request.tool.arguments.amount > 100', ['pre_request'])
  expect(() => condition(callOf({}))).toThrow('No such key: amount')
  expect(() => condition(callOf({ amount: 'much' }))).toThrow('no such overload')
  expect(() => condition(context)).toThrow('No such key: amount')
  expect(compileWhen('request.tool.name == ""', ['pre_request'])(context)).toBe(true)
})

test('bounds the work of macros over arguments', () => {
  const overItems = 'request.tool.arguments.items.exists(item, item == "x")'
  const condition = compileWhen(overItems, ['pre_request'])
  expect(condition(callOf({ items: ['x'] }))).toBe(true)
  expect(() => condition(callOf({ items: Array(20_000).fill('y') }))).toThrow(WorkBudgetExceeded)
  const inMacro = 'token.roles.exists(role, role in request.tool.arguments)'
  expect(() => compileWhen(inMacro, ['pre_request'])).toThrow('names a long text or list inside a macro')
})

test.each([
  'request.family == "chat" && !request.stream',
  'request.text.contains("aab") && request.text.size() > 5',
  'request.messages.exists(m, m.role == "system" && m.text.startsWith("Be"))',
  '"get_weather" in request.tools && "web_search" in request.tools',
  'request.headers["x-team"] == "red"',
  '!("authorization" in request.headers)',
  'request.text.matches("(a+)+b")',
  '"member" in token.roles && token.team_id == "team1" && token.user_id == ""',
  'token.metadata["plan"] == "free"',
  'model.id == "gpt-4o" && model.provider == "openai"',
  'now.getHours() == 7 && now > timestamp("2026-01-01T00:00:00Z")',
  'request.session_id == "" || request.model.endsWith("4o")',
])('applies to the request: %s', (expression) => {
  expect(compileWhen(expression, ['pre_request'])(context)).toBe(true)
})

test('a condition reads the answer, and is refused where there is none yet', () => {
  const condition = 'response.status == 200 && response.text.contains("aaab") && "get_weather" in response.tool_calls'
  expect(compileWhen(condition, ['post_request', 'pre_response'])(context)).toBe(true)
  expect(() => compileWhen(condition, ['pre_request', 'pre_response'])).toThrow('response')
})

const refusals: [string, number][] = [
  ['request.mdl == "x"', 9],
  ['request.model == 5', 15],
  ['request.stream && (request.text.size()) > "x"', 41],
  ['request.stream && request.text.contans("a")', 32],
  ['request.model ==', 17],
  ['request.model', 1],
  ['unknown == 1', 1],
  ['request.text.matches(request.model)', 1],
  ['request.text.matches("(")', 22],
  ['request.text.matches("a*")', 22],
  ['request.text.matches("(?m:^a)")', 22],
  ['request.messages.exists(m, request.messages.exists(n, true))', 28],
  ['request.messages.exists(m, request.text.contains(m.text))', 28],
  ['request.messages.exists(m, request["text"].contains(m.text))', 28],
  ['request.messages.exists(m, [request][0].text.contains(m.text))', 29],
  ['request.messages.exists(m, (request.stream ? request : request).text == m.text)', 46],
  ['cel.bind(x, request.text, x == "")', 1],
]

test.each(refusals)('%s is refused, with where it is wrong', (expression, position) => {
  const refused = (() => {
    try {
      return compileWhen(expression, ['pre_request'])
    } catch (error) {
      return error
    }
  })()
  expect(refused).toBeInstanceOf(Failure)
  expect(refused).toMatchObject({ code: 'invalid_parameter', param: 'when' })
  expect(String(refused)).toContain(`(at character ${position})`)
})

test('refuses an expression that is too long, has too many parts or is nested too deep', () => {
  expect(() => compileWhen(`request.model == "${'x'.repeat(3000)}"`, ['pre_request'])).toThrow('characters')
  expect(() => compileWhen(Array(150).fill('request.stream').join(' || '), ['pre_request'])).toThrow()
  expect(() => compileWhen(`${'('.repeat(100)}true${')'.repeat(100)}`, ['pre_request'])).toThrow()
})

const about = (text: string, count = 1): PolicyContext => ({
  ...context,
  request: new RequestView({ ...parts, texts: () => Array.from({ length: count }, () => ({ ...slots[1], text })) }),
})

test('a pattern that makes engines backtrack takes time linear in the text', async () => {
  const condition = compileWhen('request.text.matches("^(a+)+$")', ['pre_request'])
  expect(await holds(condition, about(`${'a'.repeat(10_000)}b`), { now: () => 0, tools })).toBe(false)
})

test('matches() reads patterns and texts as a pattern filter does', () => {
  const matches = (pattern: string, text: string) =>
    compileWhen(`request.text.matches(${JSON.stringify(pattern)})`, ['pre_request'])(about(text))
  expect(matches('(?i)secret', 'a SECRET')).toBe(true)
  expect(matches('secret', 'ｓｅｃｒｅｔ')).toBe(true)
  expect(matches('(?<=[0-9])x', 'a1x')).toBe(true)
  expect(matches('^secret$', 'a secret')).toBe(false)
})

const tools = { throwIfCut: () => undefined }

test('yields to other requests while it searches a long text', async () => {
  const condition = compileWhen('request.text.matches("^(a+)+$") || request.text.matches("a{3}b$")', ['pre_request'])
  let now = 0
  let turns = 0
  let isOver = false
  const count = () => {
    turns += 1
    if (!isOver) setImmediate(count)
  }
  setImmediate(count)
  const applies = holds(condition, about(`${'a'.repeat(50_000)}b`), { now: () => (now += 3), tools })
  expect(applies).toBeInstanceOf(Promise)
  expect(await applies).toBe(true)
  isOver = true
  expect(turns).toBeGreaterThan(5)
  expect(await holds(condition, about('b'.repeat(50_000)), { now: () => 0, tools })).toBe(false)
  expect(holds(condition, about('aaa'), { now: () => 0, tools })).toBe(true)
})

test('stops the search of a long text soon after the exchange was cut', async () => {
  const condition = compileWhen('request.text.matches("^(a+)+$")', ['pre_request'])
  let looks = 0
  const cut = new Error('cut')
  const now = () => (looks += 5)
  const throwIfCut = () => {
    throw cut
  }
  const searched = Promise.resolve(holds(condition, about('a'.repeat(500_000)), { now, tools: { throwIfCut } }))
  expect(await searched.catch((error: unknown) => error)).toBe(cut)
  expect(looks).toBe(10)
})

test('a condition that visits too many messages throws TooMuchWork', () => {
  const condition = compileWhen('request.messages.exists(m, m.text == "x") || request.stream', ['pre_request'])
  expect(condition(about('x', 5000))).toBe(true)
  expect(() => condition(about('x', 50_000))).toThrow(WorkBudgetExceeded)
})

test('size() of a text counts code points', () => {
  const size = 'size(request.text) == 3 && request.text.size() == 3 && request.messages.all(m, m.text.size() == 3)'
  expect(compileWhen(size, ['pre_request'])(about('a𝄞\udc00'))).toBe(true)
  expect(compileWhen('size(request.messages) == 2', ['pre_request'])(about('a', 2))).toBe(true)
})

const parts = { family: 'chat', model: 'm', stream: false, sessionId: null, body: {}, headers: new Headers() }

test('throws when an expression fails on a request', () => {
  expect(() => compileWhen('request.headers["x-other"] == "y"', ['pre_request'])(context)).toThrow('x-other')
})

test('does not join the texts when a condition does not read them', () => {
  let asked = 0
  const texts = () => {
    asked += 1
    return slots
  }
  const request = new RequestView({ ...parts, texts })
  compileWhen('request.family == "chat" && token.id == "t"', ['pre_request'])({ ...context, request })
  expect(asked).toBe(0)
})
