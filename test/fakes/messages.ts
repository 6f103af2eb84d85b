/** Messages as Anthropic writes them, whole and as SSE. */

const message = (content: readonly object[], more: object = {}) => ({
  id: 'msg_fake',
  type: 'message',
  role: 'assistant',
  model: 'fake-model',
  content,
  stop_reason: null,
  stop_sequence: null,
  usage: { input_tokens: 7, cache_read_input_tokens: 3, cache_creation_input_tokens: 1, output_tokens: 1 },
  ...more,
})

export const messagesAnswer = (text = 'Grüße aus 東京'): Buffer =>
  Buffer.from(
    ` ${JSON.stringify(
      message([{ type: 'text', text }], {
        stop_reason: 'end_turn',
        usage: { input_tokens: 7, cache_read_input_tokens: 3, cache_creation_input_tokens: 1, output_tokens: 9 },
      }),
      null,
      2,
    )}\n`,
  )

type Event = { type: string; [member: string]: unknown }

export const messageFrames = (events: readonly Event[]): Buffer =>
  Buffer.from(events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join(''))

export interface MessagesWords {
  parts?: readonly string[]
  /** Whether the stream ends with `message_stop`. */
  stopped?: boolean
}

const opening: readonly Event[] = [
  { type: 'message_start', message: message([]) },
  { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
  { type: 'ping' },
]

export function messagesStream({ parts = ['Grüße', ' aus', ' 東京'], stopped = true }: MessagesWords = {}): Buffer {
  return messageFrames([
    ...opening,
    ...parts.map((text) => ({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } })),
    { type: 'content_block_stop', index: 0 },
    {
      type: 'message_delta',
      delta: { stop_reason: 'end_turn', stop_sequence: null },
      usage: { output_tokens: 9 },
    },
    ...(stopped ? [{ type: 'message_stop' }] : []),
  ])
}

/** How Anthropic says that an answer fails after it began. */
export const failedMessagesStream = (): Buffer =>
  messageFrames([...opening, { type: 'error', error: { type: 'overloaded_error', message: 'Said by the provider' } }])

/** An error as Anthropic writes it. */
export const messagesError = (type: string): Buffer =>
  Buffer.from(
    JSON.stringify({ type: 'error', error: { type, message: 'Said by the provider' }, request_id: 'req_fake' }),
  )
