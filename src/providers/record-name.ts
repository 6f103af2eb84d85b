import { z } from 'zod'
import { noSecret } from '../identity/free-text.ts'

/** Bindings and people use names: no white space, no glob, nothing that needs escaping. */
export const recordName = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, 'Write 1 to 64 letters, digits, dots, dashes or underscores')
  .refine(...noSecret)
