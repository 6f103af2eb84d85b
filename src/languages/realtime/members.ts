/**
 * The members that the gateway reads of a realtime session: those of `session.update` and of `response.create`, and
 * `input` for the items of the conversation (OpenAI's API reference, Realtime client events).
 */
import type { MemberTable } from '../member-table.ts'

export const realtimeMembers = {
  model: { text: 'none' },
  instructions: { text: 'system' },
  input: { text: 'own', role: 'conversation' },
  prompt: { text: 'user description' },
  tools: { text: 'description' },
  tool_choice: { text: 'description' },
  // The prompt of a transcription stands in it.
  audio: { text: 'description' },
  max_output_tokens: { role: 'output limit' },
  output_modalities: { text: 'none here' },
  type: { text: 'none here' },
  conversation: { text: 'none here' },
  include: { text: 'none here' },
  truncation: { text: 'none here' },
} as const satisfies MemberTable
