/** The settings of a Converse request, as members of its `inferenceConfig`. */
import type { MemberTable } from '../member-table.ts'

export const inferenceConfigMembers = {
  maxTokens: { setting: 'maxOutputTokens' },
  temperature: { setting: 'temperature' },
  topP: { setting: 'topP' },
  stopSequences: { setting: 'stop' },
} as const satisfies MemberTable
