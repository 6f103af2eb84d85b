/** Responses as OpenAI writes them, whole and as SSE. */

const response = (status: string, more: object = {}) => ({
  id: 'resp_fake',
  object: 'response',
  created_at: 1_700_000_000,
  status,
  error: null,
  incomplete_details: null,
  instructions: null,
  model: 'fake-model',
  output: [],
  parallel_tool_calls: true,
  temperature: 1,
  tool_choice: 'auto',
  tools: [],
  top_p: 1,
  usage: null,
  metadata: {},
  ...more,
})

const usage = {
  input_tokens: 11,
  input_tokens_details: { cached_tokens: 4 },
  output_tokens: 7,
  output_tokens_details: { reasoning_tokens: 2 },
  total_tokens: 18,
}

const messageItem = (text: string) => ({
  id: 'msg_fake',
  type: 'message',
  status: 'completed',
  role: 'assistant',
  content: [{ type: 'output_text', annotations: [], logprobs: [], text }],
})

export const responsesAnswer = (text = 'Grüße aus 東京'): Buffer =>
  Buffer.from(` ${JSON.stringify(response('completed', { output: [messageItem(text)], usage }), null, 2)}\n`)

/** Events as frames, numbered. */
export const eventFrames = (events: readonly { type: string; [member: string]: unknown }[]): Buffer =>
  Buffer.from(
    events
      .map((event, number) => {
        const data = JSON.stringify({ ...event, sequence_number: number })
        return `event: ${event.type}\ndata: ${data}\n\n`
      })
      .join(''),
  )

export interface ResponsesWords {
  parts?: readonly string[]
  /** Whether the stream ends with `response.completed`. */
  completed?: boolean
}

export function responsesStream({ parts = ['Grüße', ' aus', ' 東京'], completed = true }: ResponsesWords = {}): Buffer {
  const text = parts.join('')
  const item = { output_index: 0, item_id: 'msg_fake', content_index: 0 }
  return eventFrames([
    { type: 'response.created', response: response('in_progress') },
    { type: 'response.in_progress', response: response('in_progress') },
    {
      type: 'response.output_item.added',
      output_index: 0,
      item: { ...messageItem(''), status: 'in_progress', content: [] },
    },
    {
      type: 'response.content_part.added',
      ...item,
      part: { type: 'output_text', annotations: [], logprobs: [], text: '' },
    },
    ...parts.map((delta) => ({ type: 'response.output_text.delta', ...item, delta, logprobs: [] })),
    ...(completed
      ? [
          { type: 'response.output_text.done', ...item, text, logprobs: [] },
          {
            type: 'response.content_part.done',
            ...item,
            part: { type: 'output_text', annotations: [], logprobs: [], text },
          },
          { type: 'response.output_item.done', output_index: 0, item: messageItem(text) },
          { type: 'response.completed', response: response('completed', { output: [messageItem(text)], usage }) },
        ]
      : []),
  ])
}

/** How OpenAI says that a response failed after it began. */
export const failedResponsesStream = (): Buffer =>
  eventFrames([
    { type: 'response.created', response: response('in_progress') },
    {
      type: 'error',
      error: { type: 'server_error', code: 'server_error', message: 'Said by the provider', param: null },
    },
    {
      type: 'response.failed',
      response: response('failed', { error: { code: 'server_error', message: 'Said by the provider' } }),
    },
  ])
