/** Which blocks may hold records of a window. SQL text: ranges of the primary key. */
import type { Statement } from '../../store/statement.ts'

/** SQL from `from` on: the blocks with records behind a position that may have happened in the window. */
export const blocksBehind = (position: number, { from, until }: { from: number; until: number }): Statement => ({
  sql: `from event_blocks
    where first_position >= coalesce((select max(first_position) from event_blocks where first_position <= ?), 0)
      and first_position + records - 1 > ? and +first_at < ? and +last_at >= ?`,
  args: [position, position, until, from],
})
