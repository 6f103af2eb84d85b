/** The members of an embeddings request. */
import type { MemberTable } from '../member-table.ts'

export const embeddingMembers = {
  model: { text: 'none', translation: 'carried' },
  input: { text: 'user', role: 'tokens', translation: 'carried' },
  dimensions: { translation: 'carried' },
  encoding_format: { text: 'none', translation: 'carried' },
  user: { translation: { withoutEffect: 'it has no place for it, and vectors do not depend on it' } },
} as const satisfies MemberTable
