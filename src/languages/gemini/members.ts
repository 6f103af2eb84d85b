/** The settings of a Gemini request, as members of its `generationConfig`. */
import type { MemberTable } from '../member-table.ts'

export const generationConfigMembers = {
  maxOutputTokens: { setting: 'maxOutputTokens' },
  temperature: { setting: 'temperature' },
  topP: { setting: 'topP' },
  topK: { setting: 'topK' },
  seed: { setting: 'seed' },
  frequencyPenalty: { setting: 'frequencyPenalty' },
  presencePenalty: { setting: 'presencePenalty' },
  stopSequences: { setting: 'stop' },
} as const satisfies MemberTable
