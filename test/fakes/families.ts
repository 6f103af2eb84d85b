/**
 * Each family as its provider writes it and its clients ask for it, down to the bytes: a request, a whole answer, a
 * stream. Chat has a file of its own.
 */
import { chatAnswer, chatStream } from './chat.ts'
import { jsonReply, type Reply, streamReply } from './upstream.ts'

export interface FamilyFixture {
  family: string
  path: string
  /** What a client sends. */
  request(model: string, stream: boolean): { body: Uint8Array<ArrayBuffer>; contentType: string }
  whole: Reply
  /** Null where the family has no streams. */
  stream: Reply | null
  /** What an error of the gateway's own looks like. */
  errors: 'envelope' | 'messages'
  /** Its output can be governed (policies/README.md). */
  outputStages: boolean
}

const encoder = new TextEncoder()
const json = (value: object) => ({ body: encoder.encode(JSON.stringify(value)), contentType: 'application/json' })

/** Frames of events that name their type twice, as responses, messages and audio do. */
const named = (...events: ({ type: string } & Record<string, unknown>)[]): Buffer =>
  Buffer.from(events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join(''))

/** The spacing is odd on purpose: it must arrive as it was sent. */
const spaced = (value: object): Reply => jsonReply(Buffer.from(` ${JSON.stringify(value, null, 3)}\n`))

const messages = [{ role: 'user', content: 'Grüße' }]
const response = (members: object) => ({
  id: 'resp_1',
  object: 'response',
  created_at: 1_700_000_000,
  model: 'm',
  error: null,
  incomplete_details: null,
  output: [],
  ...members,
})
const output = [
  {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    status: 'completed',
    content: [{ type: 'output_text', text: 'Grüße 東京', annotations: [] }],
  },
]
const tokenUsage = { input_tokens: 11, output_tokens: 7, total_tokens: 18 }
const place = { item_id: 'msg_1', output_index: 0, content_index: 0 }

const responsesStream = named(
  { type: 'response.created', sequence_number: 0, response: response({ status: 'in_progress' }) },
  {
    type: 'response.output_item.added',
    sequence_number: 1,
    output_index: 0,
    item: { ...output[0], status: 'in_progress', content: [] },
  },
  { type: 'response.output_text.delta', sequence_number: 2, ...place, delta: 'Grüße', logprobs: [] },
  { type: 'response.output_text.delta', sequence_number: 3, ...place, delta: ' 東京', logprobs: [] },
  { type: 'response.output_text.done', sequence_number: 4, ...place, text: 'Grüße 東京', logprobs: [] },
  { type: 'response.output_item.done', sequence_number: 5, output_index: 0, item: output[0] },
  {
    type: 'response.completed',
    sequence_number: 6,
    response: response({ status: 'completed', output, usage: tokenUsage }),
  },
)

const message = (members: object) => ({ id: 'msg_1', type: 'message', role: 'assistant', model: 'm', ...members })
const messagesStream = named(
  {
    type: 'message_start',
    message: message({ content: [], stop_reason: null, usage: { input_tokens: 11, output_tokens: 1 } }),
  },
  { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
  { type: 'ping' },
  { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Grüße' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: ' 東京' } },
  { type: 'content_block_stop', index: 0 },
  { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 7 } },
  { type: 'message_stop' },
)

const completion = (choices: object[], usage: object | null = null) => ({
  id: 'cmpl-1',
  object: 'text_completion',
  created: 1_700_000_000,
  model: 'm',
  choices,
  ...(usage && { usage }),
})
const completionUsage = { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 }
const completionsStream = Buffer.from(
  [
    JSON.stringify(completion([{ index: 0, text: 'Grüße', finish_reason: null }])),
    JSON.stringify(completion([{ index: 0, text: ' 東京', finish_reason: 'stop' }])),
    JSON.stringify(completion([], completionUsage)),
    '[DONE]',
  ]
    .map((data) => `data: ${data}\n\n`)
    .join(''),
)

const audio = Buffer.from(Uint8Array.from({ length: 300_000 }, (_, index) => (index * 7) % 253))

const transcriptionForm = (model: string, stream: boolean): Buffer => formWith('file', model, stream)
const imageForm = (model: string, stream: boolean): Buffer => formWith('image', model, stream)

function formWith(name: string, model: string, stream: boolean): Buffer {
  const fields = Object.entries({ model, prompt: 'Grüße', ...(stream && { stream: 'true' }) })
  const parts = fields.map(
    ([field, value]) => `--b\r\nContent-Disposition: form-data; name="${field}"\r\n\r\n${value}\r\n`,
  )
  const file = `--b\r\nContent-Disposition: form-data; name="${name}"; filename="a.bin"\r\nContent-Type: application/octet-stream\r\n\r\n`
  return Buffer.concat([Buffer.from(parts.join('') + file), Buffer.alloc(2048, 7), Buffer.from('\r\n--b--\r\n')])
}

const streamOptions = (stream: boolean) => (stream ? { stream, stream_options: { include_usage: true } } : {})

export const families: readonly FamilyFixture[] = [
  {
    family: 'chat',
    path: '/v1/chat/completions',
    request: (model, stream) => json({ model, messages, ...streamOptions(stream) }),
    whole: jsonReply(chatAnswer()),
    stream: streamReply(chatStream()),
    errors: 'envelope',
    outputStages: true,
  },
  {
    family: 'responses',
    path: '/v1/responses',
    // Of what is stored the gateway replaces the id (src/gateway/stored).
    request: (model, stream) => json({ model, input: 'Grüße', store: false, ...(stream && { stream }) }),
    whole: spaced(response({ status: 'completed', output, usage: tokenUsage })),
    stream: streamReply(responsesStream),
    errors: 'envelope',
    outputStages: true,
  },
  {
    family: 'messages',
    path: '/v1/messages',
    request: (model, stream) => json({ model, max_tokens: 64, messages, ...(stream && { stream }) }),
    whole: spaced(message({ content: [{ type: 'text', text: 'Grüße' }], stop_reason: 'end_turn', usage: tokenUsage })),
    stream: streamReply(messagesStream),
    errors: 'messages',
    outputStages: true,
  },
  {
    family: 'embeddings',
    path: '/v1/embeddings',
    request: (model) => json({ model, input: ['Grüße', '東京'] }),
    whole: spaced({
      object: 'list',
      model: 'm',
      data: [{ object: 'embedding', index: 0, embedding: [0.1, -0.2] }],
      usage: { prompt_tokens: 11, total_tokens: 11 },
    }),
    stream: null,
    errors: 'envelope',
    outputStages: false,
  },
  {
    family: 'transcriptions',
    path: '/v1/audio/transcriptions',
    request: (model, stream) => ({
      body: new Uint8Array(transcriptionForm(model, stream)),
      contentType: 'multipart/form-data; boundary=b',
    }),
    whole: spaced({ text: 'Grüße', usage: { type: 'tokens', ...tokenUsage } }),
    stream: streamReply(
      named(
        { type: 'transcript.text.delta', delta: 'Grüße' },
        { type: 'transcript.text.delta', delta: ' 東京' },
        { type: 'transcript.text.done', text: 'Grüße 東京', usage: { type: 'tokens', ...tokenUsage } },
      ),
    ),
    errors: 'envelope',
    outputStages: false,
  },
  {
    family: 'translations',
    path: '/v1/audio/translations',
    request: (model) => ({
      body: new Uint8Array(transcriptionForm(model, false)),
      contentType: 'multipart/form-data; boundary=b',
    }),
    whole: spaced({ text: 'Greetings', usage: { type: 'duration', seconds: 3 } }),
    stream: null,
    errors: 'envelope',
    outputStages: false,
  },
  {
    family: 'speech',
    path: '/v1/audio/speech',
    request: (model, stream) =>
      json({ model, input: 'Grüße', voice: 'alloy', ...(stream && { stream_format: 'sse' }) }),
    whole: { headers: { 'content-type': 'audio/mpeg' }, body: audio, framing: 'chunked' },
    stream: streamReply(
      named(
        { type: 'speech.audio.delta', audio: 'AAAA' },
        { type: 'speech.audio.delta', audio: 'BBBB' },
        { type: 'speech.audio.done', usage: tokenUsage },
      ),
    ),
    errors: 'envelope',
    outputStages: false,
  },
  {
    family: 'completions',
    path: '/v1/completions',
    request: (model, stream) => json({ model, prompt: 'Grüße', ...streamOptions(stream) }),
    whole: spaced(completion([{ index: 0, text: 'Grüße', finish_reason: 'stop' }], completionUsage)),
    stream: streamReply(completionsStream),
    errors: 'envelope',
    outputStages: false,
  },
  {
    family: 'moderations',
    path: '/v1/moderations',
    request: (model) => json({ model, input: ['Grüße'] }),
    whole: spaced({ id: 'modr-1', model: 'm', results: [{ flagged: false, categories: {} }] }),
    stream: null,
    errors: 'envelope',
    outputStages: false,
  },
  {
    family: 'images',
    path: '/v1/images/generations',
    request: (model, stream) => json({ model, prompt: 'Grüße', ...(stream && { stream }) }),
    whole: spaced({ created: 1, data: [{ b64_json: 'AAAA' }], usage: tokenUsage }),
    stream: streamReply(
      named(
        { type: 'image_generation.partial_image', b64_json: 'AAAA', partial_image_index: 0 },
        { type: 'image_generation.completed', b64_json: 'BBBB', usage: tokenUsage },
      ),
    ),
    errors: 'envelope',
    outputStages: false,
  },
  {
    family: 'image_edits',
    path: '/v1/images/edits',
    request: (model, stream) => ({
      body: new Uint8Array(imageForm(model, stream)),
      contentType: 'multipart/form-data; boundary=b',
    }),
    whole: spaced({ created: 1, data: [{ url: 'https://example.com/a.png' }] }),
    stream: streamReply(
      named(
        { type: 'image_edit.partial_image', b64_json: 'AAAA', partial_image_index: 0 },
        { type: 'image_edit.completed', b64_json: 'BBBB', usage: tokenUsage },
      ),
    ),
    errors: 'envelope',
    outputStages: false,
  },
  {
    family: 'rerank',
    path: '/v1/rerank',
    request: (model) => json({ model, query: 'Grüße', documents: ['東京', 'Ōsaka'] }),
    whole: spaced({ results: [{ index: 1, relevance_score: 0.9 }], usage: { total_tokens: 11 } }),
    stream: null,
    errors: 'envelope',
    outputStages: false,
  },
]
