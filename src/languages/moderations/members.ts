/** The members of a moderations request that are known here. */
import type { MemberTable } from '../member-table.ts'

export const moderationsMembers = {
  model: { text: 'none' },
  input: { text: 'user' },
} as const satisfies MemberTable
