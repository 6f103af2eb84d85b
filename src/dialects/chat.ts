/**
 * Chat completions, the language of `POST /v1/chat/completions`: JSON or SSE, a stream ended by `data: [DONE]`, errors in
 * the envelope of service.md. Bodies are the provider's and the caller's own; only what the gateway acts on is read.
 */
import { envelope, Failure } from '../failure.ts'
import { type Dialect, estimateTokens, type Usage } from './dialect.ts'

const done = '[DONE]'
const encoder = new TextEncoder()

export const chat: Dialect = {
  family: 'chat',
  route: 'POST /v1/chat/completions',
  policyStages: ['pre_request', 'post_request', 'pre_response'],
  requestForm: 'json',
  strictRequestId: false,

  read(body) {
    const { model, messages, stream } = body
    if (typeof model !== 'string' || model === '') {
      throw new Failure('invalid_parameter', { message: 'model must be a non-empty string', param: 'model' })
    }
    return {
      model,
      stream: stream === true,
      inputEstimate: estimateTokens(textLength(messages)),
      outputLimit: null,
      choices: 1,
      beyondBody: false,
      unbounded: null,
      sessionId: null,
    }
  },

  readAnswer: (body) =>
    isObject(body)
      ? { usage: readUsage(body.usage), textLength: choicesLength(body.choices, 'message') }
      : { usage: null, textLength: 0 },

  requestText: () => [],
  answerText: () => [],
  providerError: () => null,
  escalation: () => null,

  reader: () => ({
    frame({ data }) {
      if (data === done) return { terminal: true, textLength: 0, usage: null, error: null, ours: false }
      const chunk = parsed(data)
      if (!isObject(chunk)) return { terminal: false, textLength: 0, usage: null, error: null, ours: false }
      return {
        terminal: false,
        textLength: choicesLength(chunk.choices, 'delta'),
        usage: readUsage(chunk.usage),
        error: errorCode(chunk.error),
        ours: false,
      }
    },
    open: () => null,
    delta: () => new Uint8Array(0),
    errorFrames: (failure, requestId) =>
      encoder.encode(`data: ${JSON.stringify(envelope(failure, requestId))}\n\ndata: ${done}\n\n`),
    endFrames: () => encoder.encode(`data: ${done}\n\n`),
    escalationFrames: () => new Uint8Array(0),
  }),

  errorBody: envelope,
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null

function parsed(data: string): unknown {
  try {
    return JSON.parse(data)
  } catch {
    // A frame that is not JSON says nothing to the gateway; it is the client's to read, as it came.
    return null
  }
}

/** Characters of all text in messages: contents, parts, and the arguments of earlier tool calls. */
function textLength(messages: unknown): number {
  if (!Array.isArray(messages)) return 0
  let length = 0
  for (const message of messages) {
    if (!isObject(message)) continue
    if (typeof message.content === 'string') length += message.content.length
    else if (Array.isArray(message.content)) {
      for (const part of message.content)
        if (isObject(part) && typeof part.text === 'string') length += part.text.length
    }
    length += toolCallLength(message.tool_calls)
  }
  return length
}

function toolCallLength(calls: unknown): number {
  if (!Array.isArray(calls)) return 0
  let length = 0
  for (const call of calls) {
    if (isObject(call) && isObject(call.function) && typeof call.function.arguments === 'string') {
      length += call.function.arguments.length
    }
  }
  return length
}

/** Generated text is content, reasoning (as several compatible providers name it), refusal and tool arguments. */
const textFields = ['content', 'reasoning_content', 'reasoning', 'refusal'] as const

function choicesLength(choices: unknown, part: 'message' | 'delta'): number {
  if (!Array.isArray(choices)) return 0
  let length = 0
  for (const choice of choices) if (isObject(choice)) length += generatedLength(choice[part])
  return length
}

function generatedLength(part: unknown): number {
  if (!isObject(part)) return 0
  let length = toolCallLength(part.tool_calls)
  for (const name of textFields) {
    const text = part[name]
    if (typeof text === 'string') length += text.length
  }
  return length
}

const count = (value: unknown): number | null =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : null

function readUsage(usage: unknown): Usage | null {
  if (!isObject(usage)) return null
  const { prompt_tokens_details: input, completion_tokens_details: output } = usage
  const read: Usage = {
    inputTokens: count(usage.prompt_tokens),
    outputTokens: count(usage.completion_tokens),
    cachedInputTokens: isObject(input) ? count(input.cached_tokens) : null,
    cacheWriteTokens: null,
    reasoningTokens: isObject(output) ? count(output.reasoning_tokens) : null,
  }
  return read.inputTokens === null && read.outputTokens === null ? null : read
}

function errorCode(error: unknown): string | null {
  if (error === undefined || error === null) return null
  if (isObject(error)) {
    if (typeof error.code === 'string') return error.code
    if (typeof error.type === 'string') return error.type
  }
  return 'unknown'
}
