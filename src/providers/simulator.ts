/**
 * The simulator: a provider that answers inside the process, offline and always alike, so that a fresh installation can
 * be tried and tested without an account anywhere. `echo` gives back the last user message, `lorem` a fixed text as long
 * as `max_tokens` allows. Every answer says `gatehouse-simulator` in `system_fingerprint`; a token is a word.
 */
import type { Provider, ProviderKind, UpstreamCall } from './provider.ts'

const fingerprint = 'gatehouse-simulator'
/** A fixed instant, so that the same request gives the same bytes. */
const created = 1_767_225_600
const defaultLoremWords = 64
const encoder = new TextEncoder()

const lorem = (
  'Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor incididunt ut labore et dolore magna ' +
  'aliqua. Ut enim ad minim veniam, quis nostrud exercitation ullamco laboris nisi ut aliquip ex ea commodo consequat. ' +
  'Duis aute irure dolor in reprehenderit in voluptate velit esse cillum dolore eu fugiat nulla pariatur. Excepteur ' +
  'sint occaecat cupidatat non proident, sunt in culpa qui officia deserunt mollit anim id est laborum.'
).split(' ')

interface Completion {
  id: string
  model: string
  words: readonly string[]
  finishReason: 'stop' | 'length'
  inputTokens: number
}

export const simulator: ProviderKind = {
  kind: 'simulator',
  families: ['chat'],
  async send(_provider: Provider, call: UpstreamCall): Promise<Response> {
    const body: unknown = JSON.parse(new TextDecoder().decode(call.body))
    if (!isObject(body)) return refusal(400, 'invalid_request_body', 'The body is not an object')
    const completion = complete(call, body)
    if (completion === null) return refusal(404, 'model_not_found', 'The simulator has the models echo and lorem')
    if (!call.stream) return Response.json(whole(completion))
    const withUsage = isObject(body.stream_options) && body.stream_options.include_usage === true
    return new Response(frames(completion, withUsage), { headers: { 'content-type': 'text/event-stream' } })
  },
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const refusal = (status: number, code: string, message: string): Response =>
  Response.json({ error: { message, type: 'invalid_request_error', param: null, code } }, { status })

function complete(call: UpstreamCall, body: Record<string, unknown>): Completion | null {
  const name = call.model.slice(call.model.lastIndexOf('/') + 1)
  const messages = (Array.isArray(body.messages) ? body.messages : []).filter(isObject)
  const limit = outputLimit(body)
  let available: readonly string[]
  if (name === 'echo') available = wordsOf(textOf(messages.findLast(({ role }) => role === 'user')?.content))
  else if (name === 'lorem') available = loremWords(limit ?? defaultLoremWords)
  else return null
  const words = limit === null ? available : available.slice(0, limit)
  return {
    id: `chatcmpl-simulator-${Bun.hash(call.body).toString(16).padStart(16, '0')}`,
    model: call.model,
    words,
    finishReason: limit !== null && (words.length < available.length || name === 'lorem') ? 'length' : 'stop',
    inputTokens: messages.reduce((sum, { content }) => sum + wordsOf(textOf(content)).length, 0),
  }
}

function outputLimit(body: Record<string, unknown>): number | null {
  const limit = body.max_completion_tokens ?? body.max_tokens
  return typeof limit === 'number' && Number.isInteger(limit) && limit > 0 ? limit : null
}

function textOf(content: unknown): string {
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return ''
  return content.map((part) => (isObject(part) && typeof part.text === 'string' ? part.text : '')).join('')
}

/** Splits into words that keep the white space before them, so that joined they are the text again. */
function wordsOf(text: string): readonly string[] {
  if (text === '') return []
  const words = text.split(/(?<=\S)(?=\s)/)
  const last = words.at(-1) ?? ''
  return words.length > 1 && last.trim() === '' ? [...words.slice(0, -2), words.at(-2) + last] : words
}

const loremLimit = 100_000

function loremWords(count: number): readonly string[] {
  const words: string[] = []
  for (let index = 0; index < Math.min(count, loremLimit); index++) {
    words.push((index === 0 ? '' : ' ') + lorem[index % lorem.length])
  }
  return words
}

const usageOf = ({ inputTokens, words }: Completion) => ({
  prompt_tokens: inputTokens,
  completion_tokens: words.length,
  total_tokens: inputTokens + words.length,
  prompt_tokens_details: { cached_tokens: 0 },
  completion_tokens_details: { reasoning_tokens: 0 },
})

const whole = (completion: Completion) => ({
  id: completion.id,
  object: 'chat.completion',
  created,
  model: completion.model,
  system_fingerprint: fingerprint,
  choices: [
    {
      index: 0,
      message: { role: 'assistant', content: completion.words.join(''), refusal: null },
      logprobs: null,
      finish_reason: completion.finishReason,
    },
  ],
  usage: usageOf(completion),
})

/** One frame a word; each pull gives one, so that a slow reader holds nothing back in memory. */
function frames(completion: Completion, withUsage: boolean): ReadableStream<Uint8Array> {
  const { id, model, words } = completion
  const base = { id, object: 'chat.completion.chunk', created, model, system_fingerprint: fingerprint }
  const frame = (members: object) => encoder.encode(`data: ${JSON.stringify({ ...base, ...members })}\n\n`)
  const choice = (delta: object, finish: string | null) =>
    frame({
      choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
      ...(withUsage ? { usage: null } : {}),
    })
  function* all() {
    yield choice({ role: 'assistant', content: '' }, null)
    for (const word of words) yield choice({ content: word }, null)
    yield choice({}, completion.finishReason)
    if (withUsage) yield frame({ choices: [], usage: usageOf(completion) })
    yield encoder.encode('data: [DONE]\n\n')
  }
  const remaining = all()
  return new ReadableStream({
    pull(controller) {
      const next = remaining.next()
      if (next.done) controller.close()
      else controller.enqueue(next.value)
    },
  })
}
