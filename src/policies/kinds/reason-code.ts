import { z } from 'zod'

/** A stable dotted code for events and answers. */
export const reasonCode = z
  .string()
  .max(100)
  .regex(/^[a-z0-9_]+(\.[a-z0-9_]+)*$/, 'Write dotted words in lower case: policy.finance')

/** The message for the caller. */
export const callerMessage = z.string().trim().min(1).max(500)
