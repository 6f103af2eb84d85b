/** The members of a chat completion request, and the members of its messages that hold the model's text. */
import type { MemberTable } from '../member-table.ts'
import type { TextKind } from '../reading/texts/text-slot.ts'

/** Members that providers of the other OpenAI language take too, and that do not change the answer. */
export const hints = {
  metadata: { hint: "it is a label in the provider's own logs and does not change the answer" },
  prompt_cache_key: { hint: 'other providers find cached prefixes without it' },
  prompt_cache_retention: { hint: 'other languages set the time in `cache_control`' },
}

/** Why both OpenAI languages refuse certain members. */
export const stateless = 'only the provider that made an answer stores it'
/** What a provider stores, or how it caches, does not change the answer. */
export const notStored = 'other providers do not store answers, and a stored answer is no different'
export const cacheOptions = { leftOut: 'other providers find cached prefixes without it' }
export const noLogprobs = 'other providers return no log probabilities'
const oneText = 'other providers can only answer with text'
const retired = 'is retired: use tools'

export const chatMembers = {
  model: { text: 'none', translation: 'carried' },
  messages: { text: 'own', role: 'conversation', translation: 'carried' },
  prediction: { text: 'assistant', translation: { leftOut: 'it makes the answer faster and does not change it' } },
  tools: { text: 'description', translation: 'carried' },
  tool_choice: { text: 'description', translation: 'carried' },
  function_call: { text: 'description', translation: { refused: retired } },
  functions: { text: 'description', translation: { refused: retired } },
  response_format: { text: 'description', translation: 'carried' },

  max_completion_tokens: { role: 'output limit', setting: 'maxOutputTokens', translation: 'carried' },
  max_tokens: { role: 'output limit', setting: 'maxOutputTokens', translation: 'carried' },
  temperature: { setting: 'temperature', translation: 'carried' },
  top_p: { setting: 'topP', translation: 'carried' },
  seed: { setting: 'seed', translation: 'carried' },
  frequency_penalty: { setting: 'frequencyPenalty', translation: 'carried' },
  presence_penalty: { setting: 'presencePenalty', translation: 'carried' },
  stop: { setting: 'stop', translation: 'carried' },

  stream: { text: 'none', role: 'stream', translation: 'carried' },
  stream_options: {
    role: 'usage frame',
    translation: { withoutEffect: 'the gateway itself asks for usage, and passes it on if the caller asked' },
  },
  n: { role: 'choices', translation: { onlyAs: [1], refused: 'other providers return only one answer' } },
  service_tier: { text: 'none', role: 'service tier', translation: 'carried' },
  session_id: {
    text: 'none',
    role: 'session',
    translation: { withoutEffect: "it is the gateway's own member, which is read before" },
  },
  cache_control: { role: 'prompt cache', translation: 'carried' },
  parallel_tool_calls: { translation: 'carried' },
  reasoning_effort: { text: 'none', translation: 'carried' },
  verbosity: { text: 'none', translation: 'carried' },
  safety_identifier: { translation: 'carried' },
  user: { translation: 'carried' },
  metadata: { translation: hints.metadata },
  prompt_cache_key: { text: 'none', translation: hints.prompt_cache_key },
  prompt_cache_retention: { text: 'none', translation: hints.prompt_cache_retention },

  store: { text: 'none', translation: { onlyAs: [false], leftOut: notStored } },
  logprobs: { translation: { onlyAs: [false], refused: noLogprobs } },
  top_logprobs: { translation: { onlyAs: [0], refused: noLogprobs } },
  logit_bias: { translation: { onlyAs: [{}], refused: 'other providers number tokens differently' } },
  modalities: { text: 'none', translation: { onlyAs: [['text']], refused: oneText } },
  audio: { text: 'none', translation: { refused: oneText } },
  web_search_options: { translation: { leftOut: 'only providers of this language run the search' } },
  moderation: { translation: { refused: 'only providers of this language do it' } },
  prompt_cache_options: { translation: cacheOptions },
} as const satisfies MemberTable

/**
 * Members of a message, and of a stream's delta, that hold the model's text. If several hold its reasoning, the first
 * one given counts, and the gateway writes the first of the table.
 */
export const spokenMembers = {
  content: 'content',
  reasoning_content: 'reasoning',
  reasoning: 'reasoning',
  refusal: 'refusal',
} as const satisfies Readonly<Record<string, TextKind>>

export const spokenNames: readonly string[] = Object.keys(spokenMembers)

/** The members of one kind, in the table's order. */
export const membersSpeaking = (wanted: TextKind): readonly string[] =>
  Object.entries(spokenMembers).flatMap(([name, kind]) => (kind === wanted ? [name] : []))
