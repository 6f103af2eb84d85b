/** The members of a responses request, and those of its items and events that hold what the model says. */
import { cacheOptions, hints, noLogprobs, notStored, stateless } from '../chat/members.ts'
import type { MemberTable } from '../member-table.ts'

const hosted = 'it is run by providers of this language alone'

export const responsesMembers = {
  model: { text: 'none', translation: 'carried' },
  instructions: { text: 'system', translation: 'carried', repeated: 'words' },
  input: { text: 'own', role: 'conversation', translation: 'carried', repeated: 'words' },
  prompt: {
    text: 'user description',
    translation: { refused: 'only the provider that stores a prompt can use it' },
    repeated: 'setting',
  },
  tools: { text: 'description', translation: 'carried', repeated: 'setting' },
  tool_choice: { text: 'description', translation: 'carried', repeated: 'setting' },
  text: { text: 'description', translation: 'carried', repeated: 'setting' },
  // The gateway writes it as `text.format` before anything is translated.
  response_format: { text: 'description' },
  reasoning: { text: 'description', translation: 'carried', repeated: 'setting' },

  max_output_tokens: { role: 'output limit', setting: 'maxOutputTokens', translation: 'carried' },
  temperature: { setting: 'temperature', translation: 'carried' },
  top_p: { setting: 'topP', translation: 'carried' },

  stream: { text: 'none', role: 'stream', translation: 'carried' },
  stream_options: { translation: { withoutEffect: 'it asks for padding, which translated streams do not have' } },
  service_tier: { text: 'none', role: 'service tier', translation: 'carried' },
  session_id: {
    text: 'none',
    role: 'session',
    translation: { withoutEffect: "it is the gateway's own member, which is read before" },
  },
  cache_control: { role: 'prompt cache', translation: 'carried' },
  parallel_tool_calls: { translation: 'carried' },
  safety_identifier: { translation: 'carried', repeated: 'words' },
  user: { translation: 'carried', repeated: 'words' },
  metadata: { translation: hints.metadata, repeated: 'words' },
  prompt_cache_key: { text: 'none', translation: hints.prompt_cache_key, repeated: 'words' },
  prompt_cache_retention: { text: 'none', translation: hints.prompt_cache_retention, repeated: 'setting' },

  include: {
    text: 'none',
    translation: {
      onlyAs: [[], ['reasoning.encrypted_content']],
      leftOut: 'reasoning.encrypted_content is always in the answer, and other providers have nothing else to include',
      where: (value: unknown) => Array.isArray(value) && !value.includes('message.output_text.logprobs'),
      otherwise: noLogprobs,
    },
  },
  store: { text: 'none', translation: { onlyAs: [false], leftOut: notStored } },
  background: { translation: { onlyAs: [false], refused: stateless } },
  truncation: {
    text: 'none',
    translation: { onlyAs: ['disabled'], refused: 'other providers do not shorten the input' },
    repeated: 'setting',
  },
  top_logprobs: { translation: { onlyAs: [0], refused: noLogprobs } },
  previous_response_id: { text: 'none', translation: { refused: stateless }, repeated: 'setting' },
  conversation: { text: 'none', translation: { refused: stateless }, repeated: 'setting' },
  max_tool_calls: { translation: { leftOut: 'it limits tools that providers run, which other providers do not have' } },
  client_metadata: { translation: { leftOut: 'a client tracks its sessions with it' } },
  context_management: { translation: { refused: hosted } },
  moderation: { translation: { refused: hosted } },
  prompt_cache_options: { translation: cacheOptions },
} as const satisfies MemberTable

/** Members of an output item that hold what the model says, beside its parts. */
export const spokenByItem = ['name', 'arguments', 'input', 'code'] as const
/** Those of an event, and of one that brings a piece of a text. */
export const spokenByEvent = ['text', 'refusal', 'arguments', 'input', 'code', 'transcript'] as const
export const spokenByDelta = ['delta', ...spokenByEvent] as const
