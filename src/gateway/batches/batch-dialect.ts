/** Requests for files and batches: they generate nothing themselves, and OpenAI's clients read their errors. */
import { chat } from '../../languages/chat/dialect.ts'
import type { Dialect } from '../../languages/dialect.ts'
import { nothingGenerated } from '../../languages/responses/stored.ts'

export const batchObjects: Dialect = {
  ...chat,
  readsStored: true,
  read: () => nothingGenerated,
  requestText: () => [],
  readAnswer: () => ({ usage: null, textLength: 0 }),
  answerText: () => [],
  escalation: () => null,
}
