/**
 * How an agent speaks each language that applications use: it sends a request, reads the streamed answer by the
 * language's official client, and says the next turn with the results of the tools.
 */
import { GoogleGenAI } from '@google/genai'
import { openSocket, type TestSocket } from '../../../src/gateway/testing/socket.ts'
import { isObject, type JsonObject, objectsOf, parseObject } from '../../../src/languages/reading/json-value.ts'
import { anthropicReading, openaiReading } from '../../../src/languages/testing/clients.ts'
import { resultText } from './task.ts'

export type CallerLanguage = 'chat' | 'responses' | 'messages' | 'gemini'

export interface Answer {
  text: string
  /** With the id that the result must name; the input of a tool of free form is a text. */
  calls: { name: string; namespace: string | null; input: unknown }[]
  /** Input tokens, of them cached, output tokens, as the client sees them. */
  usage: (number | null | undefined)[]
  /** The conversation after this answer and the results of its calls. */
  next: JsonObject
}

/** The answer is not what the language allows, or is an error. */
export class NoAnswer extends Error {}

export interface Target {
  url: string
  token: string
  model: string
}

export interface Conversation {
  /** Sends a body and reads its answer. Throws NoAnswer. */
  ask(body: JsonObject, requestId: string): Promise<Answer>
  close(): void
}

const paths = {
  chat: () => '/v1/chat/completions',
  responses: () => '/v1/responses',
  messages: () => '/v1/messages?beta=true',
  gemini: (model: string) => `/v1beta/models/${model}:streamGenerateContent?alt=sse`,
}

/** The headers by which agents of this language give their token, and those that they always send. */
function headersOf(language: CallerLanguage, token: string): Record<string, string> {
  if (language === 'gemini') return { 'x-goog-api-key': token }
  if (language !== 'messages') return { authorization: `Bearer ${token}` }
  return { 'x-api-key': token, 'anthropic-version': '2023-06-01', 'anthropic-beta': 'context-management-2025-06-27' }
}

/** What the agent says after an answer without calls. */
const goOn = 'Go on.'

const readers = { chat: readChat, responses: readResponses, messages: readMessages, gemini: readGemini }

/** Opens a conversation over HTTP: a request for each turn. */
export function overHttp(language: CallerLanguage, { url, token, model }: Target): Conversation {
  return {
    async ask(body, requestId) {
      const { model: _, ...rest } = body
      const answer = await fetch(url + paths[language](model), {
        method: 'POST',
        headers: { ...headersOf(language, token), 'content-type': 'application/json', 'x-request-id': requestId },
        body: JSON.stringify(language === 'gemini' ? rest : { ...rest, model }),
      })
      const text = await answer.text()
      if (answer.status !== 200) throw new NoAnswer(`${answer.status} ${errorText(text)}`)
      return await reading(() => readers[language](text, body))
    },
    close: () => undefined,
  }
}

/** Opens a WebSocket as Codex does, and sends its first frame, which opens the conversation and costs nothing. */
export async function overWebSocket(target: Target, opening: JsonObject, requestId: string): Promise<Conversation> {
  const socket = await openSocket(`${target.url.replace('http', 'ws')}/v1/responses`, {
    authorization: `Bearer ${target.token}`,
    'openai-beta': 'responses_websockets=2026-02-06',
    'x-request-id': requestId,
  })
  const send = async (frame: JsonObject) => {
    socket.send(JSON.stringify({ ...frame, model: target.model }))
    return await framesOf(socket)
  }
  let previous = idOf(await send(opening))
  return {
    async ask(body) {
      const frames = await send({ ...body, previous_response_id: previous })
      previous = idOf(frames)
      const stream = frames.map((frame) => `data: ${JSON.stringify(frame)}\n\n`).join('')
      // The connection keeps the conversation: the next frame has the new items alone.
      return await reading(() => readResponses(stream, { ...body, input: [] }, false))
    },
    close: () => socket.close(),
  }
}

async function framesOf(socket: TestSocket): Promise<JsonObject[]> {
  const frames: JsonObject[] = []
  for (;;) {
    const [text = ''] = await socket.frames(1)
    const frame = parseObject(text) ?? {}
    frames.push(frame)
    if (frame.type === 'error' || frame.type === 'response.failed') throw new NoAnswer(errorText(text))
    if (frame.type === 'response.completed') return frames
  }
}

const idOf = (frames: readonly JsonObject[]): unknown => {
  const response = frames.at(-1)?.response
  return isObject(response) ? response.id : null
}

function errorText(text: string): string {
  const body = parseObject(text.startsWith('[') ? text.slice(1, -1) : text)
  const error = isObject(body?.error) ? body.error : body
  return `${typeof error?.message === 'string' ? error.message : text}`.slice(0, 300)
}

/** What a client throws at an answer that it cannot read is the answer's fault. */
async function reading(read: () => Promise<Answer>): Promise<Answer> {
  try {
    return await read()
  } catch (thrown) {
    throw new NoAnswer(`the client cannot read the answer: ${thrown}`)
  }
}

const added = (body: JsonObject, member: string, ...turns: readonly object[]): JsonObject => ({
  ...body,
  [member]: [...objectsOf(body[member]), ...turns],
})

/** opencode reads by a client that checks what OpenAI's own does not: each piece of a call has a `function`. */
function checkPieces(stream: string): void {
  for (const [, data = ''] of stream.matchAll(/^data: (\{.*)$/gm))
    for (const { delta } of objectsOf(parseObject(data)?.choices))
      for (const call of objectsOf(isObject(delta) ? delta.tool_calls : null))
        if (!isObject(call.function)) throw new TypeError(`a piece of a call has no function: ${JSON.stringify(call)}`)
}

async function readChat(stream: string, body: JsonObject): Promise<Answer> {
  checkPieces(stream)
  const asked = { model: 'm', messages: [{ role: 'user' as const, content: 'x' }] }
  const { choices, usage } = await openaiReading(stream).chat.completions.stream(asked).finalChatCompletion()
  const message = choices[0]?.message
  const calls = (message?.tool_calls ?? []).flatMap((call) => (call.type === 'function' ? [call] : []))
  const results = calls.map(({ id }) => ({ role: 'tool', tool_call_id: id, content: resultText }))
  const said = {
    role: 'assistant',
    content: message?.content ?? '',
    ...(calls.length > 0 && {
      tool_calls: calls.map(({ id, type, function: { name, arguments: text } }) => ({
        ...{ id, type },
        function: { name, arguments: text },
      })),
    }),
  }
  return {
    text: message?.content ?? '',
    calls: calls.map((call) => ({
      name: call.function.name,
      namespace: null,
      input: JSON.parse(call.function.arguments),
    })),
    usage: [usage?.prompt_tokens, usage?.prompt_tokens_details?.cached_tokens, usage?.completion_tokens],
    next: added(body, 'messages', said, ...(results.length > 0 ? results : [{ role: 'user', content: goOn }])),
  }
}

/** Over HTTP Codex sends all items again, over a WebSocket (`whole` false) the new ones. */
async function readResponses(stream: string, body: JsonObject, whole = true): Promise<Answer> {
  const { output, usage } = await openaiReading(stream).responses.stream({ model: 'm', input: 'x' }).finalResponse()
  const calls = output.flatMap((item) => {
    if (item.type === 'function_call') {
      const { call_id, name, namespace = null, arguments: text } = item
      return [{ type: 'function_call_output', call_id, name, namespace, input: JSON.parse(text) as unknown }]
    }
    if (item.type !== 'custom_tool_call') return []
    const { call_id, name, namespace = null, input } = item
    return [{ type: 'custom_tool_call_output', call_id, name, namespace, input }]
  })
  const results = calls.map(({ type, call_id }) => ({ type, call_id, output: resultText }))
  const spoken = output.flatMap((item) => (item.type === 'message' ? item.content : []))
  // The client adds what it parsed, which is no member of the language.
  const items = output.map((item) => {
    const { parsed_arguments: _, ...sent } = { parsed_arguments: null, ...item }
    if (sent.type !== 'message') return sent
    return {
      ...sent,
      content: spoken.flatMap((part) => (part.type === 'output_text' ? [{ type: part.type, text: part.text }] : [])),
    }
  })
  const more =
    results.length > 0 ? results : [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: goOn }] }]
  return {
    text: spoken.map((part) => (part.type === 'output_text' ? part.text : '')).join(''),
    calls,
    usage: [usage?.input_tokens, usage?.input_tokens_details.cached_tokens, usage?.output_tokens],
    next: added(body, 'input', ...(whole ? items : []), ...more),
  }
}

async function readMessages(stream: string, body: JsonObject): Promise<Answer> {
  const asked = { model: 'm', max_tokens: 5, messages: [{ role: 'user' as const, content: 'x' }] }
  const { content, usage } = await anthropicReading(stream).messages.stream(asked).finalMessage()
  const calls = content.flatMap((block) => (block.type === 'tool_use' ? [block] : []))
  const blocks = content.flatMap((block): object[] => {
    if (block.type === 'text') return [{ type: 'text', text: block.text }]
    if (block.type !== 'tool_use') return [block]
    return [{ type: 'tool_use', id: block.id, name: block.name, input: block.input }]
  })
  const results = calls.map(({ id }) => ({ type: 'tool_result', tool_use_id: id, content: resultText }))
  const cached = usage.cache_read_input_tokens ?? 0
  return {
    text: content.map((block) => (block.type === 'text' ? block.text : '')).join(''),
    calls: calls.map(({ name, input }) => ({ name, namespace: null, input })),
    usage: [usage.input_tokens + cached + (usage.cache_creation_input_tokens ?? 0), cached, usage.output_tokens],
    next: added(
      body,
      'messages',
      { role: 'assistant', content: blocks },
      { role: 'user', content: results.length > 0 ? results : goOn },
    ),
  }
}

/** Google's client takes no `fetch`, so the answer is played to it by a server. */
async function readGemini(stream: string, body: JsonObject): Promise<Answer> {
  using server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: () => new Response(stream, { headers: { 'content-type': 'text/event-stream' } }),
  })
  const google = new GoogleGenAI({ apiKey: 'none', httpOptions: { baseUrl: server.url.origin } })
  const parts: JsonObject[] = []
  let usage: Answer['usage'] = []
  for await (const { candidates, usageMetadata: used } of await google.models.generateContentStream({
    model: 'm',
    contents: 'x',
  })) {
    parts.push(...objectsOf(candidates?.[0]?.content?.parts))
    if (used) usage = [used.promptTokenCount, used.cachedContentTokenCount, used.candidatesTokenCount]
  }
  const calls = parts.flatMap(({ functionCall }) => (isObject(functionCall) ? [functionCall] : []))
  const results = calls.map(({ id, name }) => ({
    functionResponse: { ...(id !== undefined && { id }), name, response: { output: resultText } },
  }))
  return {
    text: parts.map(({ text, thought }) => (typeof text === 'string' && thought !== true ? text : '')).join(''),
    calls: calls.map(({ name, args }) => ({ name: String(name), namespace: null, input: args })),
    usage,
    next: added(
      body,
      'contents',
      { role: 'model', parts },
      { role: 'user', parts: results.length > 0 ? results : [{ text: goOn }] },
    ),
  }
}
