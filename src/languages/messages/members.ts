/** The members of a messages request, and the members of its blocks that hold the model's text. */
import type { MemberTable } from '../member-table.ts'
import { isObject } from '../reading/json-value.ts'

const ownServer = { refused: 'only its own provider runs this' }
const ownPlace = { refused: 'no other provider can promise where or how fast it runs' }

/** What Claude Code sends: `{edits: [{type: 'clear_thinking_20251015', keep: 'all'}]}`. */
const clearsThoughtsOnly = (value: unknown): boolean =>
  isObject(value) &&
  Array.isArray(value.edits) &&
  value.edits.every(
    (edit) => isObject(edit) && typeof edit.type === 'string' && edit.type.startsWith('clear_thinking_'),
  )

export const messagesMembers = {
  model: { text: 'none', translation: 'carried' },
  system: { text: 'own', translation: 'carried' },
  messages: { text: 'own', role: 'conversation', translation: 'carried' },
  tools: { text: 'description', translation: 'carried' },
  tool_choice: { text: 'description', translation: 'carried' },
  mcp_servers: { text: 'description', translation: ownServer },
  thinking: { text: 'description', translation: 'carried' },

  max_tokens: { role: 'output limit', setting: 'maxOutputTokens', translation: 'carried' },
  temperature: { setting: 'temperature', translation: 'carried' },
  top_p: { setting: 'topP', translation: 'carried' },
  top_k: { setting: 'topK', translation: 'carried' },
  stop_sequences: { setting: 'stop', translation: 'carried' },

  stream: { text: 'none', role: 'stream', translation: 'carried' },
  service_tier: { text: 'none', role: 'service tier', translation: 'carried' },
  // It has its own price, whatever the tier is.
  speed: { role: 'service tier', usual: 'standard', translation: { ...ownPlace, onlyAs: ['standard'] } },
  cache_control: { translation: 'carried' },
  output_config: { translation: 'carried' },
  output_format: { translation: 'carried' },
  metadata: { translation: 'carried' },

  diagnostics: { translation: { withoutEffect: "it only asks about the provider's cache" } },
  betas: { text: 'none', translation: { withoutEffect: 'it names features that have their own members' } },
  container: { text: 'none', translation: ownServer },
  context_management: {
    translation: {
      leftOut: 'it clears old thoughts, and those of one provider reach no other',
      where: clearsThoughtsOnly,
      otherwise: 'no other provider edits the conversation',
    },
  },
  inference_geo: { translation: ownPlace },
  // Some hosts of these models take the version in the body.
  anthropic_version: { text: 'none' },
} as const satisfies MemberTable

/** Members of a content block, and of a delta of one, that hold the model's text. */
export const spokenNames = ['text', 'thinking', 'partial_json', 'name'] as const
