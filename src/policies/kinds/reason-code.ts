import { z } from 'zod'

/** A stable dotted word, as events and answers say it. */
export const reasonCode = z
  .string()
  .max(100)
  .regex(/^[a-z0-9_]+(\.[a-z0-9_]+)*$/, 'Write dotted words in lower case: policy.finance')

/** What the caller is told. */
export const callerMessage = z.string().trim().min(1).max(500)
