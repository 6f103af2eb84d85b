/** Tools that only the responses language has, as functions of other providers, and their calls back. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { LanguageName } from '../../neutral.ts'
import type { JsonObject } from '../../reading/json-value.ts'
import { languages } from '../../translation/languages.ts'
import { Lenience } from '../../translation/lenience.ts'
import { translated } from '../../translation/translate-response.ts'
import { responses } from './language.ts'

const parameters = { type: 'object', properties: { id: { type: 'string' } } }
const wait = { type: 'function', name: 'wait', description: 'Waits', parameters, strict: false }
const agents = { type: 'namespace', name: 'agents', description: 'Agents.', tools: [wait, { ...wait, name: 'close' }] }
const patch = { type: 'custom', name: 'apply_patch', description: 'Edits files' }
const shell = { ...wait, name: 'shell' }

const readStrictly = (body: object, lenience?: Lenience) =>
  responses.caller.readRequest({ model: 'm', input: 'hi', ...body }, lenience)
const read = (body: object, lenience = new Lenience()) => readStrictly(body, lenience)

const toolsOf = (tools: readonly object[]) => {
  const lenience = new Lenience()
  return { tools: read({ tools }, lenience).tools, notes: lenience.notes }
}

describe('a namespace', () => {
  test('becomes functions under joined names, its description before that of the first', () => {
    expect(toolsOf([agents, shell])).toMatchObject({
      tools: [
        { name: 'agents__wait', description: 'Agents.\n\nWaits', parameters },
        { name: 'agents__close', description: 'Waits' },
        { name: 'shell' },
      ],
      notes: [],
    })
  })

  test('is carried by a strict translation too', () => {
    expect(readStrictly({ tools: [agents] }).tools).toHaveLength(2)
  })

  test('loses the tools whose names would not be clear or too long, and notes them', () => {
    const long = { ...wait, name: 'x'.repeat(60) }
    const odd = { ...wait, name: 'wait for' }
    const taken = { ...shell, name: 'agents__wait' }
    const { tools, notes } = toolsOf([taken, { ...agents, tools: [wait, long, odd, { ...wait, name: 'close' }] }])
    expect(tools.map(({ name }) => name)).toEqual(['agents__wait', 'agents__close'])
    expect(notes).toEqual(['translation.left_out:tools.tools.function'])
  })

  test('loses a tool with a member that other providers do not have', () => {
    const odd = { ...agents, tools: [{ ...wait, output_schema: {} }, { type: 'other' }, { ...wait, name: 'close' }] }
    const { tools, notes } = toolsOf([odd])
    expect(tools.map(({ name }) => name)).toEqual(['agents__close'])
    expect(notes).toEqual(['translation.left_out:tools.tools.function', 'translation.left_out:tools.tools.other'])
    expect(() => readStrictly({ tools: [odd] })).toThrow(
      expect.objectContaining({ code: 'translation_unsupported', param: 'tools.0.tools.0.output_schema' }),
    )
  })
})

describe('tools in the input', () => {
  const item = (...tools: readonly object[]) => ({ type: 'additional_tools', role: 'developer', id: 'at_1', tools })
  const user = { type: 'message', role: 'user', content: 'hi' }

  test('are tools of the request, after its own', () => {
    const request = read({ tools: [shell], input: [item(agents, patch), user] })
    expect(request.tools.map(({ name }) => name)).toEqual(['shell', 'agents__wait', 'agents__close', 'apply_patch'])
    expect(request.turns).toHaveLength(1)
    const body = { input: [item(agents), user] }
    expect(read(body).tools).toHaveLength(2)
    const answer = responses.provider.readAnswer({
      output: [{ type: 'function_call', call_id: 'c', name: 'agents__wait' }],
    })
    expect(responses.caller.writeAnswer(answer, { ...asked, request: body }).output).toMatchObject([
      { name: 'wait', namespace: 'agents' },
    ])
  })

  test('take the place of earlier ones of the same name', () => {
    const newer = { ...agents, tools: [{ ...wait, description: 'Waits longer' }] }
    expect(read({ input: [item(agents), user, item(newer)] }).tools).toMatchObject([
      { name: 'agents__wait', description: 'Agents.\n\nWaits longer' },
      { name: 'agents__close' },
    ])
  })
})

describe('a custom tool', () => {
  const input = { type: 'string' }

  test('becomes a function with one string', () => {
    const { tools, notes } = toolsOf([patch])
    expect(tools).toMatchObject([
      {
        name: 'apply_patch',
        description: 'Edits files',
        parameters: { properties: { input }, required: ['input'], additionalProperties: false },
      },
    ])
    expect(notes).toEqual([])
  })

  test('tells the model its grammar, which is noted, or refused by a strict translation', () => {
    const format = { type: 'grammar', syntax: 'lark', definition: 'start: "x"' }
    const { tools, notes } = toolsOf([{ ...patch, format }])
    expect(tools[0]?.description).toBe('Edits files\n\nThe input must match this lark grammar:\n\nstart: "x"')
    expect(notes).toEqual(['translation.replaced:tools.format'])
    expect(() => readStrictly({ tools: [{ ...patch, format }] })).toThrow(
      expect.objectContaining({ code: 'translation_unsupported', param: 'tools.0.format' }),
    )
  })

  test('is left out in a form that nobody knows', () => {
    expect(toolsOf([{ ...patch, format: { type: 'other' } }])).toMatchObject({
      tools: [],
      notes: ['translation.left_out:tools.custom'],
    })
  })

  test('can be chosen, in a namespace too', () => {
    expect(read({ tools: [patch], tool_choice: { type: 'custom', name: 'apply_patch' } }).toolChoice?.value).toEqual({
      name: 'apply_patch',
    })
    const choice = { type: 'function', name: 'wait', namespace: 'agents' }
    expect(read({ tools: [agents], tool_choice: choice }).toolChoice?.value).toEqual({ name: 'agents__wait' })
  })
})

test('calls of earlier turns and their results reach the provider as those of the functions', () => {
  const input = [
    {
      type: 'custom_tool_call',
      call_id: 'a',
      name: 'apply_patch',
      input: '*** "x"\n',
      id: 'ctc_1',
      status: 'completed',
    },
    { type: 'custom_tool_call_output', call_id: 'a', output: 'ok', id: 'o' },
    { type: 'function_call', call_id: 'b', name: 'wait', namespace: 'agents', arguments: '{"id":"1"}' },
    { type: 'function_call_output', call_id: 'b', output: 'done' },
  ]
  const request = read({ tools: [patch, agents], input })
  const { messages } = languages.chat.provider.writeRequest(request)
  expect(messages).toMatchObject([
    { tool_calls: [{ id: 'a', function: { name: 'apply_patch', arguments: '{"input":"*** \\"x\\"\\n"}' } }] },
    { role: 'tool', tool_call_id: 'a', content: 'ok' },
    { tool_calls: [{ id: 'b', function: { name: 'agents__wait', arguments: '{"id":"1"}' } }] },
    { role: 'tool', tool_call_id: 'b', content: 'done' },
  ])
})

const asked = {
  ...{ model: 'm', exchangeId: '0190a0c0-0000-7000-8000-000000000001', includeUsage: true },
  request: { tools: [patch, agents, shell] },
}

interface Called {
  name: string
  arguments: string
}

const chatAnswer = (calls: readonly Called[]) => ({
  choices: [
    {
      index: 0,
      message: {
        role: 'assistant',
        content: null,
        tool_calls: calls.map((called, index) => ({ id: `c${index}`, type: 'function', function: called })),
      },
      finish_reason: 'tool_calls',
    },
  ],
})

const callItems = (output: unknown) =>
  (Array.isArray(output) ? output : []).map(({ id: _id, status: _status, ...item }: JsonObject) => item)

const wholeAnswer = (calls: readonly Called[]) =>
  callItems(responses.caller.writeAnswer(languages.chat.provider.readAnswer(chatAnswer(calls)), asked).output)

/** The events of a streamed answer whose arguments come in pieces of this length. */
async function streamed(calls: readonly Called[], length: number): Promise<JsonObject[]> {
  const chunks = calls.flatMap(({ name, arguments: text }, index) => {
    const pieces = text.match(new RegExp(`[^]{1,${length}}`, 'g')) ?? []
    const first = { index, id: `c${index}`, type: 'function', function: { name, arguments: '' } }
    return [first, ...pieces.map((piece) => ({ index, function: { arguments: piece } }))].map((called) => ({
      choices: [{ index: 0, delta: { tool_calls: [called] } }],
    }))
  })
  const last = { choices: [{ index: 0, delta: {}, finish_reason: 'tool_calls' }] }
  const text = [...chunks, last].map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join('')
  const upstream = new Response(`${text}data: [DONE]\n\n`, { headers: { 'content-type': 'text/event-stream' } })
  const from = languages.chat.provider
  const answer = await translated(upstream, {
    ...{ from, to: responses.caller, asked, limit: 2 ** 20 },
    heard: () => undefined,
  })
  return [...(await answer.text()).matchAll(/^data: (.*)$/gm)].map(([, data = '']) => JSON.parse(data))
}

const calls: readonly Called[] = [
  { name: 'apply_patch', arguments: '{"input": "*** \\"Grüße\\"\\n"}' },
  { name: 'agents__wait', arguments: '{"id":"1"}' },
  { name: 'shell', arguments: '{}' },
]
const items = [
  { type: 'custom_tool_call', call_id: 'c0', name: 'apply_patch', input: '*** "Grüße"\n' },
  { type: 'function_call', call_id: 'c1', name: 'wait', namespace: 'agents', arguments: '{"id":"1"}' },
  { type: 'function_call', call_id: 'c2', name: 'shell', arguments: '{}' },
]

describe('a call of a function', () => {
  test('comes back as a call of the caller’s own tool', () => {
    expect(wholeAnswer(calls)).toEqual(items)
  })

  test('comes back so in a stream', async () => {
    const events = await streamed(calls, 3)
    expect(callItems(events.at(-1)?.type === 'response.completed' ? responseOf(events.at(-1)).output : [])).toEqual(
      items,
    )
    const done = events.filter(({ type }) => type === 'response.output_item.done').map(({ item }) => item)
    expect(callItems(done)).toEqual(items)
    expect(events.map(({ type }) => type)).toContain('response.custom_tool_call_input.done')
    expect(inputOf(events)).toEqual(['*', '** ', '"G', 'rüß', 'e"', '\n'])
    const named = events.filter(({ type }) => type === 'response.function_call_arguments.done')
    expect(named.map(({ name }) => name)).toEqual(['wait', 'shell'])
  })

  test('with arguments of another form gives them as the input', async () => {
    for (const text of ['*** Begin', '{"patch":"x"}', '{"input":1}', '']) {
      const called = [{ name: 'apply_patch', arguments: text }]
      expect(wholeAnswer(called)).toMatchObject([{ input: text }])
      const events = await streamed(called, 2)
      expect(responseOf(events.at(-1)).output).toMatchObject([{ type: 'custom_tool_call', input: text }])
    }
  })

  test('gives an input with a line end that its provider did not escape', async () => {
    const events = await streamed([{ name: 'apply_patch', arguments: '{"input":"a\nb"}' }], 4)
    expect(responseOf(events.at(-1)).output).toMatchObject([{ input: 'a\nb' }])
  })

  test('keeps every input, however it is streamed', async () => {
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: 'binary' }), fc.integer({ min: 1, max: 9 }), async (input, length) => {
        const called = [{ name: 'apply_patch', arguments: JSON.stringify({ input }) }]
        const events = await streamed(called, length)
        expect(callItems(responseOf(events.at(-1)).output)).toEqual(wholeAnswer(called))
        expect(wholeAnswer(called)).toMatchObject([{ input }])
        expect(inputOf(events).join('')).toBe(input)
        if (input.isWellFormed()) expect(inputOf(events).every((piece) => piece.isWellFormed())).toBe(true)
      }),
      { numRuns: 100 },
    )
  })

  test('is in the language of every other provider the same', () => {
    const input = [{ type: 'custom_tool_call', call_id: 'a', name: 'apply_patch', input: 'x' }]
    const result = [{ type: 'custom_tool_call_output', call_id: 'a', output: 'ok' }]
    const request = read({ tools: [patch, agents], input: [...input, ...result], max_output_tokens: 10 })
    for (const name of ['chat', 'messages', 'gemini', 'converse'] satisfies LanguageName[]) {
      const text = JSON.stringify(languages[name].provider.writeRequest(request))
      expect(text).toContain('agents__close')
      expect(text).toMatch(/"input":"x"|\\"input\\":\\"x\\"/)
    }
  })
})

const inputOf = (events: readonly JsonObject[]) =>
  events.filter(({ type }) => type === 'response.custom_tool_call_input.delta').map(({ delta }) => String(delta))

const responseOf = (event: JsonObject | undefined): JsonObject => {
  const response = event?.response
  return typeof response === 'object' && response !== null ? { ...response } : {}
}
