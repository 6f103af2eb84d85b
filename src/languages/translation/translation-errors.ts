/** Errors for what cannot be translated: for the caller, naming its field, or about the provider's answer. */

import { Failure } from '../../failure.ts'
import { isObject, parseExactObject } from '../../lib/json/exact-json.ts'
import type { FieldPath, NeutralError } from '../neutral.ts'
import type { JsonObject } from '../reading/json-value.ts'

/** 400: the target language, or every other language, has no place for this value. */
export const unsupported = (param: FieldPath, message: string): Failure =>
  new Failure('translation_unsupported', { param, message: `${param}: ${message}` })

/** 422: the value is not valid in its own language. */
export const malformed = (param: FieldPath, wanted: string): Failure =>
  new Failure('invalid_parameter', { param, message: `${param} must be ${wanted}` })

/** 502: the provider's answer is not valid in its language. */
export const unusable = (message: string): Failure => new Failure('upstream_provider_error', { message })

/** The object of a stream's frame. Throws if there is none: its content is lost, so the answer would be incomplete. */
export function frameObject(data: string): JsonObject {
  const frame = parseExactObject(data)
  if (frame === null) throw unusable('The provider sent a frame that holds no object')
  return frame
}

/** The arguments of a language that holds them as an object, as JSON text. Throws if they are anything else. */
export function argumentsText(given: unknown): string {
  if (given === undefined || given === null) return '{}'
  if (!isObject(given)) throw unusable('The provider called a tool with arguments that are no JSON object')
  return JSON.stringify(given)
}

/** Throws if a provider calls a tool without naming it: no client could answer the call. */
export function requireName({ kind, name }: { kind: string; name?: string | null }): void {
  if (kind === 'tool_call' && name === '') throw unusable('The provider called a tool without a name')
}

/** The message for a provider that ends a stream with an error without one. */
export const failed: NeutralError = {
  status: null,
  code: 'upstream_provider_error',
  message: "The provider's answer failed",
}
