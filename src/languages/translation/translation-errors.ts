/** What is said where something cannot be translated: to the caller, whose own field is named, or of the provider's answer. */

import { Failure } from '../../failure.ts'
import { isObject, parseExactObject } from '../../lib/json/exact-json.ts'
import type { FieldPath, NeutralError } from '../neutral.ts'
import type { JsonObject } from '../reading/json-value.ts'

/** 400: the target, or any other language, has no place for what stands here. */
export const unsupported = (param: FieldPath, message: string): Failure =>
  new Failure('translation_unsupported', { param, message: `${param}: ${message}` })

/** 422: what stands here is not what its own language wants there. */
export const malformed = (param: FieldPath, wanted: string): Failure =>
  new Failure('invalid_parameter', { param, message: `${param} must be ${wanted}` })

/** 502: what a provider sent is no answer in its language. */
export const unusable = (message: string): Failure => new Failure('upstream_provider_error', { message })

/** The object of a stream's frame. Throws where there is none: what it held cannot be told, and the answer is not whole. */
export function frameObject(data: string): JsonObject {
  const frame = parseExactObject(data)
  if (frame === null) throw unusable('The provider sent a frame that holds no object')
  return frame
}

/** Arguments that a provider's language holds as an object, as JSON text. Throws where they are anything else. */
export function argumentsText(given: unknown): string {
  if (given === undefined || given === null) return '{}'
  if (!isObject(given)) throw unusable('The provider called a tool with arguments that are no JSON object')
  return JSON.stringify(given)
}

/** Throws where a provider calls a tool and does not say which: no client could answer it. */
export function requireName({ kind, name }: { kind: string; name?: string | null }): void {
  if (kind === 'tool_call' && name === '') throw unusable('The provider called a tool without a name')
}

/** What a provider that ends a stream with an error, and nothing more, leaves unsaid. */
export const failed: NeutralError = {
  status: null,
  code: 'upstream_provider_error',
  message: "The provider's answer failed",
}
