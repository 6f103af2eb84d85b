/** Chat completions as an OpenAI-compatible provider writes them, whole and as SSE, down to the bytes. */

export interface ChatWords {
  model?: string
  /** The generated text; a stream has one frame for each part. */
  parts?: readonly string[]
  /** Left out where null: not every provider reports it. */
  usage?: { prompt_tokens: number; completion_tokens: number; total_tokens: number } | null
  /** `\n` is common, `\r\n` allowed (WHATWG HTML, server-sent events). */
  lineEnding?: '\n' | '\r\n'
  /** Whether the stream ends with `data: [DONE]`. */
  done?: boolean
  /** Whether it says why it ends; where it does not, it breaks off before that. */
  finished?: boolean
}

const defaults = {
  model: 'fake-model',
  parts: ['Grüße', ' aus', ' 東京', ' 👩‍👩‍👧', '!'],
  usage: { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 },
  lineEnding: '\n',
  done: true,
  finished: true,
} as const

/** A whole answer. The spacing is odd on purpose: it must arrive as it was sent. */
export function chatAnswer(words: ChatWords = {}): Buffer {
  const { model, parts, usage } = { ...defaults, ...words }
  const answer = {
    id: 'chatcmpl-fake',
    object: 'chat.completion',
    created: 1_700_000_000,
    model,
    choices: [{ index: 0, message: { role: 'assistant', content: parts.join('') }, finish_reason: 'stop' }],
    ...(usage && { usage }),
    vendor_extension: { kept: true },
  }
  return Buffer.from(` ${JSON.stringify(answer, null, 3)}\n\n`)
}

/** A streamed answer: a comment, one frame for each part, the usage, `[DONE]`. */
export function chatStream(words: ChatWords = {}): Buffer {
  const { model, parts, usage, lineEnding, done, finished } = { ...defaults, ...words }
  const chunk = (delta: object, finish: string | null, more: object = {}) =>
    JSON.stringify({
      id: 'chatcmpl-fake',
      object: 'chat.completion.chunk',
      created: 1_700_000_000,
      model,
      choices: [{ index: 0, delta, finish_reason: finish }],
      ...more,
    })
  const end = [
    chunk({}, 'stop'),
    ...(usage ? [JSON.stringify({ ...JSON.parse(chunk({}, null)), choices: [], usage })] : []),
    ...(done ? ['[DONE]'] : []),
  ]
  const data = [
    chunk({ role: 'assistant', content: '' }, null),
    ...parts.map((content) => chunk({ content }, null)),
    ...(finished ? end : []),
  ]
  const frames = data.map((line) => `data: ${line}${lineEnding}${lineEnding}`)
  return Buffer.from([`: ping${lineEnding}${lineEnding}`, ...frames].join(''))
}

/** An error as OpenAI writes it. */
export const providerError = (code: string): Buffer =>
  Buffer.from(JSON.stringify({ error: { message: 'Said by the provider', type: 'provider_type', param: null, code } }))
