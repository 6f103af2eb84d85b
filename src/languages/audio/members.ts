/** The members of the two audio families that are known here. */
import type { MemberTable } from '../member-table.ts'

export const speechMembers = {
  model: { text: 'none' },
  input: { text: 'user' },
  instructions: { text: 'user' },
  voice: { text: 'none here' },
  response_format: { text: 'none here' },
  stream_format: { text: 'none here' },
  speed: { text: 'none here' },
} as const satisfies MemberTable

/** Fields of its form. */
export const transcriptionsMembers = {
  file: { text: 'none here' },
  model: { text: 'none' },
  language: { text: 'none here' },
  response_format: { text: 'none here' },
  temperature: { text: 'none here' },
  stream: { text: 'none' },
  'timestamp_granularities[]': { text: 'none here' },
  'include[]': { text: 'none here' },
  chunking_strategy: { text: 'none here' },
} as const satisfies MemberTable
