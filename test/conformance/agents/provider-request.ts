/**
 * Reads a request as its provider does, whatever its language: its tools, and a result for each call right after it.
 */
import { chat, responses } from './openai-forms.ts'
import { converse, gemini, messages, type Wire } from './request-forms.ts'

/** What a request tells, however its language says it. */
export interface ProviderRequest {
  tools: string[]
  /** Whether several tools may be called in one answer. */
  parallel: boolean
  calls: { id: string; name: string; input: unknown }[]
  results: { id: string; text: string }[]
}

type Entry = { call: ProviderRequest['calls'][number] } | { result: ProviderRequest['results'][number] } | 'other'

const textOf = (content: string | readonly { text: string }[]): string =>
  typeof content === 'string' ? content : content.map(({ text }) => text).join('')

/** OpenAI knows no `cache_control`; servers that imitate it take the mark, or pass it over. */
const knowsNoMarks = /^gpt-/

function readChat(body: unknown) {
  const request = chat.parse(body)
  if (knowsNoMarks.test(request.model) && JSON.stringify(request).includes('"cache_control":'))
    throw new Error("Unknown parameter: 'messages[0].content[0].cache_control'.")
  const entries = request.messages.flatMap((message): Entry[] => {
    if (message.role === 'tool') return [{ result: { id: message.tool_call_id, text: textOf(message.content) } }]
    if (message.role !== 'assistant') return ['other']
    return (message.tool_calls ?? []).map(({ id, function: { name, arguments: input } }) => ({
      call: { id, name, input },
    }))
  })
  const tools = (request.tools ?? []).map((tool) => tool.function.name)
  return { tools, parallel: request.parallel_tool_calls !== false, entries }
}

function readResponses(body: unknown) {
  const request = responses.parse(body)
  const further = request.input.flatMap((item) => (item.type === 'additional_tools' ? item.tools : []))
  const entries = request.input.map((item): Entry => {
    switch (item.type) {
      case 'function_call':
        return { call: { id: item.call_id, name: item.name, input: item.arguments } }
      case 'custom_tool_call':
        return { call: { id: item.call_id, name: item.name, input: { input: item.input } } }
      case 'function_call_output':
      case 'custom_tool_call_output':
        return { result: { id: item.call_id, text: item.output } }
      default:
        return 'other'
    }
  })
  const tools = [...(request.tools ?? []), ...further].flatMap((tool) =>
    tool.type === 'namespace' ? tool.tools.map((inner) => `${tool.name}__${String(inner.name)}`) : String(tool.name),
  )
  return { tools, parallel: request.parallel_tool_calls !== false, entries }
}

function readMessages(body: unknown) {
  const request = messages.parse(body)
  const entries = request.messages.flatMap(({ content }) =>
    typeof content === 'string'
      ? ['other' as const]
      : content.map((block): Entry => {
          if (block.type === 'tool_use') return { call: block }
          if (block.type === 'tool_result') return { result: { id: block.tool_use_id, text: textOf(block.content) } }
          return 'other'
        }),
  )
  const marks = JSON.stringify(request).split('"cache_control"').length - 1
  if (marks > 4) throw new Error(`cache_control: ${marks} of at most 4`)
  const tools = (request.tools ?? []).map(({ name }) => name)
  return { tools, parallel: request.tool_choice?.disable_parallel_tool_use !== true, entries }
}

function readGemini(body: unknown) {
  const request = gemini.parse(body)
  const entries = request.contents.flatMap(({ parts }) =>
    parts.map((part): Entry => {
      if ('functionCall' in part) {
        const { id, name, args } = part.functionCall
        return { call: { id: id ?? name, name, input: args } }
      }
      if (!('functionResponse' in part)) return 'other'
      const { id, name, response } = part.functionResponse
      return { result: { id: id ?? name, text: Object.values(response).join('') } }
    }),
  )
  const tools = (request.tools ?? []).flatMap((tool) => tool.functionDeclarations.map(({ name }) => name))
  return { tools, parallel: true, entries }
}

function readConverse(body: unknown) {
  const request = converse.parse(body)
  const entries = request.messages.flatMap(({ content }) =>
    content.map((block): Entry => {
      if ('toolUse' in block) {
        const { toolUseId, name, input } = block.toolUse
        return { call: { id: toolUseId, name, input } }
      }
      if (!('toolResult' in block)) return 'other'
      return { result: { id: block.toolResult.toolUseId, text: textOf(block.toolResult.content) } }
    }),
  )
  const tools = (request.toolConfig?.tools ?? []).flatMap((tool) => ('toolSpec' in tool ? [tool.toolSpec.name] : []))
  return { tools, parallel: true, entries }
}

const readers = {
  chat: readChat,
  responses: readResponses,
  messages: readMessages,
  gemini: readGemini,
  converse: readConverse,
} satisfies Record<Wire, unknown>

/** Reads a request of this wire language. Throws where the provider would refuse it. */
export function readProviderRequest(wire: Wire, body: unknown): ProviderRequest {
  const { tools, parallel, entries } = readers[wire](body)
  const calls = entries.flatMap((entry) => (entry !== 'other' && 'call' in entry ? [entry.call] : []))
  const results = entries.flatMap((entry) => (entry !== 'other' && 'result' in entry ? [entry.result] : []))
  if (new Set(tools).size !== tools.length) throw new Error('tools: two have one name')
  let open: string[] = []
  for (const entry of entries) {
    if (entry !== 'other' && 'call' in entry) open.push(entry.call.id)
    else if (entry !== 'other') {
      if (!open.includes(entry.result.id)) throw new Error(`the result of ${entry.result.id} follows no call`)
      open = open.filter((id) => id !== entry.result.id)
    } else if (open.length > 0) throw new Error(`the call ${open.join()} has no result right after it`)
  }
  if (open.length > 0) throw new Error(`the call ${open.join()} has no result`)
  return { tools, parallel, calls, results }
}
