/** The refusal of what a provider's language cannot say: 400, the caller's own field named (contract section 6). */
import { Failure } from '../failure.ts'
import type { FieldPath } from './neutral.ts'

/** To be thrown. `message` says why and what to do, and never repeats a value. */
export const unsupported = (at: FieldPath, message: string): Failure =>
  new Failure('translation_unsupported', { param: at, message })
