/** What the official conformance suite of MCP expects a server to offer, by its scenarios' own descriptions. */
import { McpError } from '@modelcontextprotocol/sdk/types.js'
import type { Json } from '../../src/mcp/connection.ts'

/** As `src/gateway/testing/mcp.ts` gives it to a handler. */
interface Working {
  readonly params: Json
  progress(progress: number): void
  notify(method: string, params: Json): void
  ask(method: string, params: Json): Promise<Json>
}
type Handler = (working: Working) => Json | Promise<Json>

const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=='
const wav = 'UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA='
const text = (words: string) => ({ type: 'text', text: words })
const image = { type: 'image', data: png, mimeType: 'image/png' }
const resource = (uri: string, mimeType: string, words: string) => ({
  type: 'resource',
  resource: { uri, mimeType, text: words },
})
const content = (...blocks: Json[]) => ({ content: blocks })
const named = (names: readonly string[]) =>
  names.map((name) => ({ name, description: `For ${name}`, inputSchema: { type: 'object' } }))

const sayAll = async ({ notify }: Working) => {
  for (const data of ['Tool execution started', 'Tool processing data', 'Tool execution completed']) {
    notify('notifications/message', { level: 'info', data })
  }
  return content(text('Logged'))
}

const elicit = async ({ ask }: Working, message: string, properties: Json, required: string[] = []) => {
  const requestedSchema = { type: 'object', properties, required }
  const { action, content: said } = await ask('elicitation/create', { message, requestedSchema })
  return content(text(`Elicitation completed: action=${action}, content=${JSON.stringify(said)}`))
}

const options = ['option1', 'option2', 'option3']
const titled = ['First', 'Second', 'Third'].map((title, index) => ({ const: `value${index + 1}`, title }))

const tools: Record<string, Handler> = {
  test_simple_text: () => content(text('This is a simple text response for testing.')),
  test_image_content: () => content(image),
  test_audio_content: () => content({ type: 'audio', data: wav, mimeType: 'audio/wav' }),
  test_embedded_resource: () =>
    content(resource('test://embedded-resource', 'text/plain', 'This is an embedded resource content.')),
  test_multiple_content_types: () =>
    content(
      text('Multiple content types test:'),
      image,
      resource('test://mixed-content-resource', 'application/json', '{"test":"data","value":123}'),
    ),
  test_tool_with_logging: sayAll,
  test_reconnection: () => content(text('Reconnected')),
  test_error_handling: () => ({
    ...content(text('This tool intentionally returns an error for testing')),
    isError: true,
  }),
  test_tool_with_progress: ({ progress }) => {
    for (const done of [0, 50, 100]) progress(done)
    return content(text('Done'))
  },
  test_sampling: async ({ params, ask }) => {
    const { prompt } = params.arguments as { prompt: string }
    const messages = [{ role: 'user', content: text(prompt) }]
    const { content: said } = await ask('sampling/createMessage', { messages, maxTokens: 100 })
    return content(text(`LLM response: ${(said as { text: string }).text}`))
  },
  test_elicitation: (working) => {
    const { message } = working.params.arguments as { message: string }
    const properties = { username: { type: 'string' }, email: { type: 'string' } }
    return elicit(working, message, properties, ['username', 'email'])
  },
  test_elicitation_sep1034_defaults: (working) =>
    elicit(working, 'Defaults?', {
      name: { type: 'string', default: 'John Doe' },
      age: { type: 'integer', default: 30 },
      score: { type: 'number', default: 95.5 },
      status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
      verified: { type: 'boolean', default: true },
    }),
  test_elicitation_sep1330_enums: (working) =>
    elicit(working, 'Which?', {
      untitledSingle: { type: 'string', enum: options },
      titledSingle: { type: 'string', oneOf: titled },
      legacyEnum: { type: 'string', enum: ['opt1', 'opt2', 'opt3'], enumNames: ['One', 'Two', 'Three'] },
      untitledMulti: { type: 'array', items: { type: 'string', enum: options } },
      titledMulti: { type: 'array', items: { anyOf: titled } },
    }),
}

const schemaTool = {
  name: 'json_schema_2020_12_tool',
  description: 'Tool with JSON Schema 2020-12 features',
  inputSchema: {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    type: 'object',
    $defs: {
      address: {
        $anchor: 'addressDef',
        type: 'object',
        properties: { street: { type: 'string' }, city: { type: 'string' } },
      },
    },
    properties: {
      name: { type: 'string' },
      address: { $ref: '#/$defs/address' },
      contactMethod: { type: 'string', enum: ['phone', 'email'] },
      phone: { type: 'string' },
      email: { type: 'string' },
    },
    allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
    if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
    // biome-ignore lint/suspicious/noThenProperty: a keyword
    then: { required: ['phone'] },
    else: { required: ['email'] },
    additionalProperties: false,
  },
}

const prompts: Record<string, (given: Record<string, string>) => Json[]> = {
  test_simple_prompt: () => [text('This is a simple prompt for testing.')],
  test_prompt_with_arguments: ({ arg1, arg2 }) => [text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)],
  test_prompt_with_embedded_resource: ({ resourceUri = '' }) => [
    resource(resourceUri, 'text/plain', 'Embedded resource content for testing.'),
    text('Please process the embedded resource above.'),
  ],
  test_prompt_with_image: () => [image, text('Please analyze the image above.')],
}

const readable = (uri: string): Json => {
  const [, id] = /^test:\/\/template\/(.+)\/data$/.exec(uri) ?? []
  if (uri === 'test://static-binary') return { uri, mimeType: 'image/png', blob: png }
  if (id === undefined) {
    return { uri, mimeType: 'text/plain', text: 'This is the content of the static text resource.' }
  }
  const data = { id, templateTest: true, data: `Data for ID: ${id}` }
  return { uri, mimeType: 'application/json', text: JSON.stringify(data) }
}

/** By method. */
export const conformanceHandlers: Record<string, Handler> = {
  'tools/list': () => ({ tools: [...named(Object.keys(tools)), schemaTool] }),
  'tools/call': (working) => tools[String(working.params.name)]?.(working) ?? content(text('No such tool')),
  'prompts/list': () => ({
    prompts: named(Object.keys(prompts)).map(({ name, description }) => ({ name, description })),
  }),
  'prompts/get'({ params }) {
    const blocks = prompts[String(params.name)]?.((params.arguments ?? {}) as Record<string, string>) ?? []
    return { messages: blocks.map((block) => ({ role: 'user', content: block })) }
  },
  'resources/list': () => ({
    resources: ['text', 'binary'].map((name) => ({ uri: `test://static-${name}`, name, description: name })),
  }),
  'resources/templates/list': () => ({
    resourceTemplates: [{ uriTemplate: 'test://template/{id}/data', name: 'data' }],
  }),
  'resources/read': ({ params }) => ({ contents: [readable(String(params.uri))] }),
  'resources/subscribe': () => ({}),
  'resources/unsubscribe': () => ({}),
  'completion/complete': () => ({ completion: { values: ['paris', 'park', 'party'], total: 150, hasMore: false } }),
  'logging/setLevel': () => ({}),
}

const askFor =
  (message: string, member: string, type = 'string') =>
  (working: Working) =>
    elicit(working, message, { [member]: { type } }, [member])
const askModel = async ({ ask }: Working) => {
  const messages = [{ role: 'user', content: text('What is the capital of France?') }]
  return content(text(`Sampled ${JSON.stringify(await ask('sampling/createMessage', { messages, maxTokens: 50 }))}`))
}
const askRoots = async ({ ask }: Working) => content(text(`Roots ${JSON.stringify(await ask('roots/list', {}))}`))
const askName = askFor('What is your name?', 'name')

/** The tools of the suite of 2026-07-28 that need something of their caller: here they ask for it in the middle of a call. */
const askingTools: Record<string, Handler> = {
  elicitation: askName,
  sampling: askModel,
  list_roots: askRoots,
  request_state: askFor('Please confirm', 'ok', 'boolean'),
  async multiple_inputs(working) {
    await Promise.all([askName(working), askModel(working), askRoots(working)])
    return content(text('All'))
  },
  tampered_state: askFor('Please confirm', 'ok', 'boolean'),
  async multi_round(working) {
    await askName(working)
    return await askFor('Which color?', 'color')(working)
  },
  capabilities: askModel,
}
const askingPrefix = 'test_input_required_result_'

/** A tool whose argument a header repeats. */
export const markedTool = {
  name: 'test_custom_header',
  description: 'Repeats an argument as a header',
  inputSchema: {
    type: 'object',
    properties: { region: { type: 'string', 'x-mcp-header': 'Region' } },
    required: ['region'],
  },
}
/** The addresses that there are. */
export const knownResources = /^test:\/\/(?:static-|template\/)/

/** The same server with what only the suite of 2026-07-28 asks for, as far as its generation can have it. */
export const askingConformanceHandlers: Record<string, Handler> = {
  ...conformanceHandlers,
  'tools/list': () => ({
    tools: [
      ...named([...Object.keys(tools), ...Object.keys(askingTools).map((name) => askingPrefix + name)]),
      schemaTool,
      markedTool,
    ],
  }),
  'tools/call': (working) => {
    const name = String(working.params.name)
    return (tools[name] ?? askingTools[name.replace(askingPrefix, '')])?.(working) ?? content(text('No such tool'))
  },
  'resources/read'({ params }) {
    if (knownResources.test(String(params.uri))) return { contents: [readable(String(params.uri))] }
    throw new McpError(-32_002, 'Resource not found', { uri: params.uri })
  },
  'prompts/list': () => ({
    prompts: named([...Object.keys(prompts), `${askingPrefix}prompt`]).map(({ name, description }) => ({
      name,
      description,
    })),
  }),
  async 'prompts/get'(working) {
    if (working.params.name !== `${askingPrefix}prompt`)
      return (await conformanceHandlers['prompts/get']?.(working)) ?? {}
    const { content: said } = await askFor('Which context?', 'context')(working)
    return { messages: (said as Json[]).map((block) => ({ role: 'user', content: block })) }
  },
}
