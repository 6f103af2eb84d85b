/**
 * Describes the bodies of each family for `/v1/openapi.json`: the members that this product or nearly every client
 * knows. The schemas do not validate. Unknown members are forwarded unchanged, and the provider decides what a model
 * accepts.
 */
import { z } from 'zod'
import type { Family } from '../../languages/families.ts'
import type { Described } from './described.ts'
import { gemini } from './gemini-schemas.ts'

const model = z.string().min(1).describe('A model id of GET /v1/models, or one that a provider of this gateway knows')
const stream = z.boolean().optional().describe('Answer as server-sent events')
const content = z
  .union([z.string(), z.array(z.looseObject({ type: z.string() })), z.null()])
  .optional()
  .describe('Text, or parts of it')
const message = z.looseObject({ role: z.string().describe('system, developer, user, assistant or tool'), content })
const whole = z.number().int()

const outputSchema = {
  name: z.string().min(1),
  strict: z.boolean().nullish(),
  schema: z.record(z.string(), z.unknown()),
}

const sessionMembers = {
  session_id: z
    .string()
    .max(256)
    .optional()
    .describe('Groups requests on one session worker; x-session-id is its header form. Not forwarded'),
  cache_control: z
    .object({ type: z.literal('ephemeral'), ttl: z.enum(['5m', '1h']).optional() })
    .optional()
    .describe('Asks for prompt caching, where the gateway allows it'),
  response_format: z
    .union([
      z.looseObject({ type: z.literal('json_object') }),
      z.looseObject({
        type: z.literal('json_schema'),
        json_schema: z.looseObject(outputSchema),
      }),
      z.looseObject({ type: z.literal('text') }),
    ])
    .optional(),
}

const chatUsage = z.looseObject({ prompt_tokens: whole, completion_tokens: whole, total_tokens: whole }).optional()
const tokenUsage = z.looseObject({ input_tokens: whole, output_tokens: whole }).optional()

const chat: Described = {
  summary: 'Completes a chat, as JSON or as server-sent events ended by `data: [DONE]`',
  request: z.looseObject({ model, messages: z.array(message), stream, ...sessionMembers }),
  reply: z.looseObject({
    id: z.string(),
    object: z.string(),
    created: whole,
    model: z.string(),
    choices: z.array(
      z.looseObject({
        index: whole,
        message: z.looseObject({ role: z.string(), content: z.string().nullable() }),
        finish_reason: z.string().nullable(),
      }),
    ),
    usage: chatUsage,
  }),
  alsoAnswers: ['text/event-stream'],
}

const responses: Described = {
  summary: 'Creates a response, as JSON or as server-sent events',
  request: z.looseObject({
    model,
    input: z.union([z.string(), z.array(z.looseObject({ type: z.string().optional() }))]).optional(),
    instructions: z.string().nullish(),
    stream,
    text: z
      .looseObject({
        format: z
          .union([
            z.looseObject({ type: z.literal('json_object') }),
            z.looseObject({ type: z.literal('json_schema'), ...outputSchema }),
            z.looseObject({ type: z.literal('text') }),
          ])
          .nullish(),
      })
      .nullish(),
    ...sessionMembers,
  }),
  reply: z.looseObject({
    id: z.string(),
    object: z.literal('response'),
    created_at: z.number(),
    status: z.string(),
    model: z.string(),
    output: z.array(z.looseObject({ type: z.string() })),
    usage: tokenUsage.nullable(),
  }),
  alsoAnswers: ['text/event-stream'],
}

const messages: Described = {
  summary: 'Creates a message of content blocks, as JSON or as server-sent events; its errors have their own form',
  request: z.looseObject({
    model,
    max_tokens: whole.positive(),
    system: content,
    messages: z.array(message),
    stream,
  }),
  reply: z.looseObject({
    id: z.string(),
    type: z.literal('message'),
    role: z.literal('assistant'),
    model: z.string(),
    content: z.array(z.looseObject({ type: z.string() })),
    stop_reason: z.string().nullable(),
    usage: tokenUsage,
  }),
  alsoAnswers: ['text/event-stream'],
  takesApiKey: 'x-api-key',
  errors: 'messages',
}

export const tokenCount: Described = {
  summary: 'Counts the tokens of a messages request by its own provider; 501 where the provider counts none',
  request: z.looseObject({ model, system: content, messages: z.array(message) }),
  reply: z.looseObject({ input_tokens: whole }),
  takesApiKey: 'x-api-key',
  errors: 'messages',
}

const tokens = z.array(whole)

const embeddings: Described = {
  summary: 'Creates vectors of texts',
  request: z.looseObject({
    model,
    input: z.union([z.string(), z.array(z.string()), tokens, z.array(tokens)]),
    encoding_format: z.enum(['float', 'base64']).optional(),
    dimensions: whole.positive().optional(),
  }),
  reply: z.looseObject({
    object: z.literal('list'),
    model: z.string(),
    data: z.array(
      z.looseObject({
        object: z.literal('embedding'),
        index: whole,
        embedding: z.union([z.array(z.number()), z.string().describe('32-bit floats, little-endian, in base64')]),
      }),
    ),
    usage: z.looseObject({ prompt_tokens: whole, total_tokens: whole }).optional(),
  }),
}

const transcriptions: Described = {
  summary: 'Transcribes an audio file, as JSON, text, subtitles, or server-sent events',
  requestType: 'multipart/form-data',
  request: z.looseObject({
    file: z.string().meta({ contentMediaType: 'application/octet-stream' }).describe('The audio, 25 MiB at most'),
    model,
    prompt: z.string().optional(),
    response_format: z.enum(['json', 'text', 'srt', 'verbose_json', 'vtt']).optional(),
    stream: z.enum(['true', 'false']).optional().describe('Answer as server-sent events'),
  }),
  reply: z.looseObject({ text: z.string(), usage: z.looseObject({ type: z.string() }).optional() }),
  alsoAnswers: ['text/plain', 'text/vtt', 'text/event-stream'],
}

const translations: Described = {
  ...transcriptions,
  summary: 'Translates speech in an audio file into English, as JSON, text or subtitles',
  request: z.looseObject({
    file: z.string().meta({ contentMediaType: 'application/octet-stream' }).describe('The audio, 25 MiB at most'),
    model,
    prompt: z.string().optional(),
    response_format: z.enum(['json', 'text', 'srt', 'verbose_json', 'vtt']).optional(),
  }),
  alsoAnswers: ['text/plain', 'text/vtt'],
}

const speech: Described = {
  summary: 'Turns a text into speech; the answer is audio, or server-sent events that contain it',
  request: z.looseObject({
    model,
    input: z.string(),
    voice: z.unknown(),
    instructions: z.string().optional(),
    response_format: z.string().optional().describe('mp3, opus, aac, flac, wav or pcm'),
    stream_format: z.enum(['audio', 'sse']).optional(),
  }),
  alsoAnswers: ['audio/mpeg', 'audio/wav', 'application/octet-stream', 'text/event-stream'],
}

const completions: Described = {
  summary: 'Completes a text, for clients of the legacy language; policies do not read its answers',
  request: z.looseObject({
    model,
    prompt: z.union([z.string(), z.array(z.string()), tokens, z.array(tokens)]),
    max_tokens: whole.nonnegative().nullish(),
    stream,
  }),
  reply: z.looseObject({
    id: z.string(),
    object: z.literal('text_completion'),
    created: whole,
    model: z.string(),
    choices: z.array(z.looseObject({ index: whole, text: z.string(), finish_reason: z.string().nullable() })),
    usage: chatUsage,
  }),
  alsoAnswers: ['text/event-stream'],
}

const moderations: Described = {
  summary: 'Classifies texts or pictures as harmful or not',
  request: z.looseObject({
    model: model.optional(),
    input: z.union([z.string(), z.array(z.string()), z.array(z.looseObject({ type: z.string() }))]),
  }),
  reply: z.looseObject({
    id: z.string(),
    model: z.string(),
    results: z.array(z.looseObject({ flagged: z.boolean(), categories: z.record(z.string(), z.unknown()) })),
  }),
}

const imageSettings = {
  model,
  prompt: z.string(),
  n: whole.positive().optional(),
  size: z.string().optional(),
  quality: z.string().optional(),
  output_format: z.string().optional().describe('png, jpeg or webp'),
}
const imageReply = z.looseObject({
  created: whole,
  data: z.array(z.looseObject({ b64_json: z.string().optional(), url: z.string().optional() })),
  usage: tokenUsage,
})

const images: Described = {
  summary: 'Generates images of a prompt, as JSON or as server-sent events with partial images',
  request: z.looseObject({ ...imageSettings, stream, partial_images: whole.optional() }),
  reply: imageReply,
  alsoAnswers: ['text/event-stream'],
}

const picture = z.string().meta({ contentMediaType: 'application/octet-stream' })
const imageEdits: Described = {
  summary: 'Edits images by a prompt, as JSON or as server-sent events with partial images',
  requestType: 'multipart/form-data',
  request: z.looseObject({
    ...imageSettings,
    n: z.string().optional(),
    image: picture.optional().describe('The image, or several as image[]; 25 MiB at most'),
    mask: picture.optional(),
    stream: z.enum(['true', 'false']).optional(),
  }),
  reply: imageReply,
  alsoAnswers: ['text/event-stream'],
}

const rerank: Described = {
  summary: 'Orders documents by their relevance to a query',
  request: z.looseObject({
    model,
    query: z.string(),
    documents: z.array(z.union([z.string(), z.looseObject({ text: z.string().optional() })])).min(1),
    top_n: whole.positive().optional(),
    return_documents: z.boolean().optional(),
  }),
  reply: z.looseObject({
    results: z.array(z.looseObject({ index: whole, relevance_score: z.number() })),
    usage: z.looseObject({ total_tokens: whole }).optional(),
  }),
}

const rpcMembers = { jsonrpc: z.literal('2.0'), id: z.union([z.string(), whole]).optional() }
const mcp: Described = {
  summary: 'Sends one JSON-RPC message to the MCP surface: all MCP servers of the catalog as one',
  request: z.looseObject({
    ...rpcMembers,
    method: z.string().optional().describe('initialize, tools/list, tools/call, … (MCP 2025-11-25, 2025-06-18)'),
    params: z.looseObject({}).optional(),
  }),
  reply: z.looseObject({
    ...rpcMembers,
    result: z.looseObject({}).optional(),
    error: z.looseObject({ code: whole, message: z.string(), data: z.unknown().optional() }).optional(),
  }),
  alsoAnswers: ['text/event-stream'],
  otherSuccess: { 202: 'A notification or an answer was taken' },
  errors: 'json-rpc',
}

export const familySchemas: Readonly<Record<Exclude<Family, 'realtime'>, Described>> = {
  chat,
  responses,
  messages,
  gemini,
  embeddings,
  transcriptions,
  translations,
  speech,
  completions,
  moderations,
  images,
  image_edits: imageEdits,
  rerank,
  mcp,
}
