/** The members of a completions request that are known here. */
import type { MemberTable } from '../member-table.ts'

export const completionsMembers = {
  model: { text: 'none' },
  prompt: { text: 'user', role: 'tokens' },
  max_tokens: { role: 'output limit' },
  n: { role: 'choices' },
  best_of: { role: 'choices' },
  stream: { text: 'none', role: 'stream' },
  stream_options: { role: 'usage frame' },
} as const satisfies MemberTable
