/** The members of a messages request, and those of its blocks that hold what the model says. */
import type { MemberTable } from '../member-table.ts'

const ownServer = { refused: 'only its own provider runs this' }
const ownPlace = { refused: 'no other provider can promise where or how fast it runs' }

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
  // It has a price of its own, whatever the tier is.
  speed: { role: 'service tier', usual: 'standard', translation: { ...ownPlace, onlyAs: ['standard'] } },
  cache_control: { translation: 'carried' },
  output_config: { translation: 'carried' },
  output_format: { translation: 'carried' },
  metadata: { translation: 'carried' },

  diagnostics: { translation: { withoutEffect: "it asks about the provider's cache" } },
  betas: { text: 'none', translation: { withoutEffect: 'it names features, of which each is told by its own member' } },
  container: { text: 'none', translation: ownServer },
  context_management: { translation: ownServer },
  inference_geo: { translation: ownPlace },
  // Some places that serve these models take the version here.
  anthropic_version: { text: 'none' },
} as const satisfies MemberTable

/** Members of a content block, and of a delta of one, that hold what the model says. */
export const spokenNames = ['text', 'thinking', 'partial_json', 'name'] as const
