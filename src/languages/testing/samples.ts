/** A request for each feature that says nothing else, for the tests of what languages carry and refuse. */

import type { LanguageName, NeutralMedia, NeutralPart, NeutralRequest, NeutralTool } from '../neutral.ts'
import type { Feature } from '../translation-language.ts'

/** Where the feature stands in every sample. */
export const sampleField = 'the.field'

const at = sampleField
const text = { kind: 'text', text: 'Hello', at: 'other' } as const
const stated = <Value>(value: Value) => ({ value, at })

/** A question, and nothing else. */
export const plainRequest: NeutralRequest = {
  model: 'm',
  instructions: [],
  turns: [{ role: 'user', parts: [text], at: 'other' }],
  tools: [],
  toolChoice: null,
  parallelTools: null,
  output: null,
  reasoning: null,
  sampling: {},
  endUser: null,
  stream: false,
  extras: new Map(),
}

const said = (role: 'user' | 'assistant', ...parts: NeutralPart[]): Partial<NeutralRequest> => ({
  turns: [...plainRequest.turns, { role, parts, at: 'other' }],
})
const media = (part: Omit<NeutralMedia, 'at'>) => said('user', { ...part, at })
const tool: NeutralTool = { name: 'look', description: null, parameters: { type: 'object' }, strict: null, at }
const call = { kind: 'tool_call', id: 'call_1', name: 'look', arguments: '{}', at } as const
const image: NeutralMedia = { kind: 'image', mediaType: 'image/png', source: { base64: 'aaaa' }, at }

const result = (parts: readonly (typeof text | NeutralMedia)[], isError = false): Partial<NeutralRequest> => ({
  turns: [
    ...plainRequest.turns,
    { role: 'assistant', parts: [{ ...call, at: 'other' }], at: 'other' },
    { role: 'tool', parts: [{ kind: 'tool_result', callId: 'call_1', name: 'look', parts, isError, at }], at: 'other' },
  ],
})

const thought = { kind: 'thought', text: 'Hm', signature: 'sig', redacted: null, at } as const
const reasoning = { effort: null, budgetTokens: null, visible: null }
const document = { kind: 'document', mediaType: 'application/pdf', source: { base64: 'aaaa' }, title: 'a.pdf' } as const
const citation = { title: 't', url: 'https://example.com', citedText: null, original: {} }

/** Bedrock fetches from S3 alone, and has models of many makers. */
const addressOf = (language: LanguageName, file: string) =>
  `${language === 'converse' ? 's3://bucket' : 'https://example.com'}/${file}`

export const plainFor = (language: LanguageName): NeutralRequest =>
  language === 'converse' ? { ...plainRequest, model: 'anthropic.claude-sonnet-4-5-v1:0' } : plainRequest

/** What a request says of each feature; null for those of answers. */
export const sampleOf = (language: LanguageName): Readonly<Record<Feature, Partial<NeutralRequest> | null>> => ({
  instructions: { instructions: [{ ...text, at }] },
  later_instructions: { turns: [...plainRequest.turns, { role: 'system', parts: [{ ...text, at }], at }] },
  speaker_name: { turns: [{ role: 'user', parts: [text], name: stated('ann'), at: 'other' }] },
  image_url: media({ kind: 'image', mediaType: null, source: { url: addressOf(language, 'a.png') } }),
  image_data: media(image),
  image_file: media({ kind: 'image', mediaType: null, source: { fileId: 'file_1' } }),
  image_detail: media({ ...image, detail: stated('low') }),
  document_url: media({ kind: 'document', mediaType: null, source: { url: addressOf(language, 'a.pdf') } }),
  document_data: media(document),
  document_text: media({ kind: 'document', mediaType: 'text/plain', source: { text: 'words' } }),
  document_file: media({ kind: 'document', mediaType: null, source: { fileId: 'file_1' } }),
  document_citations: media({ ...document, citations: stated(true) }),
  audio_data: media({ kind: 'audio', mediaType: 'audio/wav', source: { base64: 'aaaa' } }),
  tools: { tools: [tool] },
  strict_tools: { tools: [{ ...tool, strict: true }] },
  tool_choice: { tools: [tool], toolChoice: stated('required') },
  named_tool: { tools: [tool], toolChoice: stated({ name: 'look' }) },
  parallel_tools: { tools: [tool], parallelTools: stated(false) },
  tool_calls: said('assistant', call),
  call_signature: said('assistant', { ...call, signature: { text: 'sig', language } }),
  tool_results: result([text]),
  tool_result_media: result([image]),
  tool_errors: result([text], true),
  json_output: { output: stated({ form: 'json' }) },
  schema_output: {
    output: stated({ form: 'schema', name: 'n', description: null, schema: { type: 'object' }, strict: true }),
  },
  reasoning_effort: { reasoning: stated({ ...reasoning, effort: 'low' }) },
  reasoning_budget: { reasoning: stated({ ...reasoning, budgetTokens: 2048 }) },
  thoughts: said('assistant', { ...thought, language }, text),
  redacted_thoughts: said('assistant', { ...thought, text: '', signature: null, redacted: 'hidden', language }, text),
  foreign_thoughts: said('assistant', { ...thought, language: language === 'gemini' ? 'messages' : 'gemini' }, text),
  refusals: said('assistant', { kind: 'refusal', text: 'No', at }),
  citations: said('assistant', { ...text, citations: [citation], at }),
  max_output_tokens: { sampling: { maxOutputTokens: stated(64) } },
  temperature: { sampling: { temperature: stated(0.5) } },
  top_p: { sampling: { topP: stated(0.5) } },
  top_k: { sampling: { topK: stated(5) } },
  seed: { sampling: { seed: stated(5) } },
  frequency_penalty: { sampling: { frequencyPenalty: stated(0.5) } },
  presence_penalty: { sampling: { presencePenalty: stated(0.5) } },
  stop: { sampling: { stop: stated(['end']) } },
  end_user: { endUser: stated('u') },
  cache_marker: said('user', { ...text, cache: stated({ ttl: null }), at }),
  answer_thoughts: null,
  answer_citations: null,
  answer_refusal: null,
  answer_stop_sequence: null,
  answer_usage: null,
})

const other = { model: 'meta.llama4-maverick-17b-instruct-v1:0' }
const spreadsheet = 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet'

/** Of features that a language carries, what it refuses none the less. */
export const refusedBeside: Readonly<Record<LanguageName, Partial<Record<Feature, Partial<NeutralRequest>>>>> = {
  chat: { audio_data: media({ kind: 'audio', mediaType: 'audio/ogg', source: { base64: 'aaaa' } }) },
  responses: {},
  messages: {
    document_data: media({ ...document, mediaType: spreadsheet }),
    reasoning_effort: { reasoning: stated({ ...reasoning, effort: 'minimal' }) },
  },
  gemini: {
    image_detail: { turns: [{ role: 'user', parts: [{ ...image, detail: stated('low') }, image], at: 'other' }] },
    tool_result_media: result([{ ...image, source: { url: 'https://example.com/a.png' } }]),
    reasoning_effort: { reasoning: stated({ ...reasoning, effort: 'max' }) },
    stop: { sampling: { stop: stated(['1', '2', '3', '4', '5', '6']) } },
  },
  converse: {
    image_url: media({ kind: 'image', mediaType: null, source: { url: 'https://example.com/a.png' } }),
    image_data: media({ ...image, mediaType: 'image/bmp' }),
    document_url: media({ ...document, source: { url: 'https://example.com/a.pdf' } }),
    tool_choice: { ...result([text]), tools: [tool], toolChoice: stated('none') },
    reasoning_effort: { ...other, reasoning: stated({ ...reasoning, effort: 'low' }) },
    reasoning_budget: { ...other, reasoning: stated({ ...reasoning, budgetTokens: 2048 }) },
    top_k: { ...other, sampling: { topK: stated(5) } },
  },
}
