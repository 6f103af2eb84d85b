/** The members of a completions request that are known here. */
import type { MemberTable } from '../member-table.ts'

export const completionsMembers = {
  model: { text: 'none' },
  prompt: { text: 'user', role: 'tokens' },
  max_tokens: { role: 'output limit' },
  n: { role: 'choices' },
  // Providers read 0 as their default, which is 1.
  best_of: { role: 'choices', least: 0 },
  stream: { text: 'none', role: 'stream' },
  stream_options: { role: 'usage frame' },
} as const satisfies MemberTable
