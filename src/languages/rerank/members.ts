/** The members of a rerank request that are known here. */
import type { MemberTable } from '../member-table.ts'

export const rerankMembers = {
  model: { text: 'none' },
  query: { text: 'user' },
  documents: { text: 'user' },
  instruction: { text: 'user' },
  top_n: { text: 'none here' },
  return_documents: { text: 'none here' },
  max_chunks_per_doc: { text: 'none here' },
  max_tokens_per_doc: { text: 'none here' },
  rank_fields: { text: 'none here' },
} as const satisfies MemberTable
