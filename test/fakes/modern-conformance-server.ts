/**
 * What the official conformance suite of MCP expects of a server of 2026-07-28, by its scenarios' own descriptions, on the
 * official library: what the older suite expects too, and tools that need something of their caller first.
 */
import { createHmac } from 'node:crypto'
import { createMcpHandler, ProtocolError, Server } from '@modelcontextprotocol/server'
import type { Json } from '../../src/mcp/connection.ts'
import { conformanceHandlers, knownResources, markedTool } from './mcp-conformance-server.ts'

const text = (words: string) => ({ content: [{ type: 'text', text: words }] })
const form = (message: string, member: string, type = 'string') => ({
  method: 'elicitation/create',
  params: {
    mode: 'form',
    message,
    requestedSchema: { type: 'object', properties: { [member]: { type } }, required: [member] },
  },
})
const sampling = (words: string) => ({
  method: 'sampling/createMessage',
  params: { messages: [{ role: 'user', content: { type: 'text', text: words } }], maxTokens: 50 },
})
const roots = { method: 'roots/list', params: {} }

/** A request in its round. */
interface Round {
  readonly answers: Json
  readonly state: string | undefined
  readonly capabilities: Json
}

const needs = (inputRequests: Json, requestState?: string): Json => ({
  resultType: 'input_required',
  inputRequests,
  ...(requestState !== undefined && { requestState }),
})

const seal = (words: string) => `${words}.${createHmac('sha256', 'a key of the suite').update(words).digest('hex')}`
/** Throws for a state that this server did not make. */
function opened(state: string): string {
  const words = state.slice(0, state.lastIndexOf('.'))
  if (seal(words) === state) return words
  throw new ProtocolError(-32_602, 'The state was changed')
}
const said = (answer: unknown): string => JSON.stringify(answer)

/** Needs what is asked here, then says what it got. */
const asking =
  (requests: Json, done: string, state?: string) =>
  ({ answers, state: given }: Round): Json => {
    if (given !== undefined) opened(given)
    const isAnswered = Object.keys(requests).every((key) => answers[key] !== undefined)
    return isAnswered ? text(`${done} ${said(answers)}`) : needs(requests, state === undefined ? state : seal(state))
  }

const prefix = 'test_input_required_result_'
const tools: Record<string, (round: Round) => Json> = {
  [`${prefix}elicitation`]: asking({ user_name: form('What is your name?', 'name') }, 'Hello'),
  [`${prefix}sampling`]: asking({ sample_request: sampling('What is the capital of France?') }, 'Sampled'),
  [`${prefix}list_roots`]: asking({ roots_request: roots }, 'Roots'),
  [`${prefix}request_state`]: asking({ confirm: form('Please confirm', 'ok', 'boolean') }, 'state-ok', 'one'),
  [`${prefix}multiple_inputs`]: asking(
    { user_name: form('What is your name?', 'name'), greeting: sampling('Greet'), client_roots: roots },
    'All',
    'many',
  ),
  [`${prefix}tampered_state`]: asking({ confirm: form('Please confirm', 'ok', 'boolean') }, 'integrity-ok', 'sealed'),
  [`${prefix}multi_round`]({ answers, state }) {
    const round = state === undefined ? null : opened(state)
    if (round === 'second' && answers.step2 !== undefined) return text(`Done ${said(answers.step2)}`)
    if (round === 'first' && answers.step1 !== undefined)
      return needs({ step2: form('Which color?', 'color') }, seal('second'))
    return needs({ step1: form('What is your name?', 'name') }, seal('first'))
  },
  [`${prefix}capabilities`]({ answers, capabilities }) {
    if (Object.keys(answers).length > 0) return text('Done')
    return needs({
      ...(capabilities.elicitation !== undefined && { elicited: form('Which value?', 'value') }),
      ...(capabilities.sampling !== undefined && { sampled: sampling('Sample') }),
    })
  },
  test_missing_capability: asking({ sampled: sampling('Sample') }, 'Sampled'),
  test_streaming_elicitation: asking({ confirm: form('Please confirm', 'ok', 'boolean') }, 'Done'),
}

const plainTools = ['test_logging_tool', 'test_trigger_tool_change', 'test_trigger_prompt_change']
const promptName = `${prefix}prompt`

export function startModernConformanceServer() {
  const handler = createMcpHandler(() => serverWith(handler), { legacy: 'reject' })
  const listener = Bun.serve({ port: 0, idleTimeout: 0, fetch: (request) => guarded(request, handler) })
  return {
    url: `http://localhost:${listener.port}/mcp`,
    async stop() {
      await handler.close()
      await listener.stop(true)
    },
  }
}

type Handler = ReturnType<typeof createMcpHandler>

/** The library leaves the origin to whoever serves it. */
const guarded = (request: Request, handler: Handler): Promise<Response> | Response => {
  const host = request.headers.get('origin') ?? request.headers.get('host') ?? ''
  return /localhost|127\.0\.0\.1/.test(host) ? handler.fetch(request) : new Response(null, { status: 403 })
}

/** What the library gives to a handler, as far as it is used here. */
interface OlderRequest {
  notify(message: object): Promise<void>
  readonly _meta?: Json
  readonly envelope?: Json
  readonly inputResponses?: Json
}

/** A tool of the older suite asks its caller in the middle of its work; here it begins again with the answers. */
class Needed extends Error {
  readonly requests: Json

  constructor(requests: Json) {
    super('The caller is asked first')
    this.requests = requests
  }
}

function serverWith(handler: Handler): Server {
  const capabilities = {
    tools: { listChanged: true },
    prompts: { listChanged: true },
    resources: { subscribe: true, listChanged: true },
    logging: {},
    completions: {},
  }
  const server = new Server({ name: 'suite', version: '1' }, { capabilities })
  const older = async (method: string, params: Json, mcpReq?: OlderRequest) => {
    let asked = 0
    const sent: Promise<void>[] = []
    const notify = (told: string, more: Json) => {
      sent.push(mcpReq?.notify({ method: told, params: more }) ?? Promise.resolve())
    }
    const progressToken = mcpReq?._meta?.progressToken
    const result = await conformanceHandlers[method]?.({
      params,
      // A log is sent to who asks for one.
      notify: (told, more) => {
        const wanted = mcpReq?.envelope?.['io.modelcontextprotocol/logLevel']
        if (told !== 'notifications/message' || wanted !== undefined) notify(told, more)
      },
      progress: (progress) => notify('notifications/progress', { progressToken, progress, total: 100 }),
      async ask(method, more) {
        asked += 1
        const answer = mcpReq?.inputResponses?.[`asked-${asked}`]
        if (answer === undefined) throw new Needed({ [`asked-${asked}`]: { method, params: { ...more } } })
        return answer as Json
      },
    })
    await Promise.all(sent)
    return result ?? {}
  }
  const answer = (method: string, respond: (params: Json, mcpReq: never) => Json | Promise<Json>) =>
    server.setRequestHandler(
      method as never,
      (async ({ params = {} }: { params?: Json }, { mcpReq }: { mcpReq: never }) =>
        await respond(params, mcpReq)) as never,
    )
  answer('tools/list', async (params) => {
    const { tools: shared } = (await older('tools/list', params)) as { tools: Json[] }
    const own = [...Object.keys(tools), ...plainTools].map((name) => ({
      name,
      description: name,
      inputSchema: { type: 'object' },
    }))
    return { tools: [...shared, ...own, markedTool] }
  })
  answer('tools/call', async (params, mcpReq) => {
    const name = String(params.name)
    const { inputResponses, requestState, envelope } = mcpReq as {
      inputResponses?: Json
      requestState?: () => string | undefined
      envelope?: Json
    }
    const capabilities = (envelope?.['io.modelcontextprotocol/clientCapabilities'] ?? {}) as Json
    const round = { answers: inputResponses ?? {}, state: requestState?.(), capabilities }
    const tool = tools[name]
    if (tool !== undefined) return tool(round)
    if (name === 'test_trigger_tool_change') handler.notify.toolsChanged()
    if (name === 'test_trigger_prompt_change') handler.notify.promptsChanged()
    if (plainTools.includes(name) || name === markedTool.name) return text('Done')
    return await older('tools/call', params, mcpReq).catch((thrown: unknown) => {
      if (thrown instanceof Needed) return needs(thrown.requests)
      throw thrown
    })
  })
  answer('prompts/list', async (params) => {
    const { prompts } = (await older('prompts/list', params)) as { prompts: Json[] }
    return { prompts: [...prompts, { name: promptName, description: promptName }] }
  })
  answer('prompts/get', async (params, mcpReq) => {
    if (params.name !== promptName) return await older('prompts/get', params)
    const { inputResponses = {} } = mcpReq as { inputResponses?: Json }
    if (inputResponses.user_context === undefined) return needs({ user_context: form('Which context?', 'context') })
    return { messages: [{ role: 'user', content: { type: 'text', text: said(inputResponses.user_context) } }] }
  })
  answer('resources/read', async (params) => {
    if (!knownResources.test(String(params.uri)))
      throw new ProtocolError(-32_602, 'Resource not found', { uri: params.uri })
    return await older('resources/read', params)
  })
  for (const method of ['resources/list', 'resources/templates/list', 'completion/complete'])
    answer(method, (params) => older(method, params))
  return server
}
