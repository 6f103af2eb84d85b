/** What chat and responses have in common: errors, efforts, output schemas, names in tool choices. */

import { hints } from '../chat/members.ts'
import {
  type Effort,
  efforts,
  type FieldPath,
  type NeutralError,
  type NeutralOutput,
  type NeutralReasoning,
  type NeutralRequest,
  type Stated,
} from '../neutral.ts'
import { isGiven, isObject, type JsonObject, textOf } from '../reading/json-value.ts'
import { gathered, onlyMembers, statedString, stringAt } from './field-readers.ts'
import { malformed, unsupported } from './translation-errors.ts'

/** An error's body: `{"error": {message, type, param, code}}`, of which some providers have less. */
export function readOpenAiError(status: number | null, body: unknown): NeutralError {
  const error = isObject(body) && isGiven(body.error) ? body.error : body
  if (typeof error === 'string' && error !== '') return { status, code: null, message: error }
  if (!isObject(error)) return { status, code: null, message: 'The provider answered with an error' }
  const code = textOf(error.code) ?? (typeof error.code === 'number' ? String(error.code) : null) ?? textOf(error.type)
  return { status, code, message: textOf(error.message) ?? 'The provider answered with an error' }
}

export const writeOpenAiError = ({ status, code, message }: NeutralError): JsonObject => ({
  error: { message, type: typeOf(status), param: null, code },
})

function typeOf(status: number | null): string {
  if (status === null || status >= 500) return 'server_error'
  if (status === 401) return 'authentication_error'
  if (status === 403) return 'permission_error'
  return status === 429 ? 'rate_limit_error' : 'invalid_request_error'
}

export function readEffort(given: unknown, at: FieldPath): Effort | null {
  const stated = statedString(given, at)
  if (stated === null) return null
  const effort = efforts.find((known) => known === stated.value)
  if (effort === undefined) throw unsupported(at, `is none of ${efforts.join(', ')}`)
  return effort
}

/**
 * A budget has no member here: it becomes the effort whose thinking is about as long. A budget of zero is not sent,
 * because models that do not think refuse any effort.
 */
export function effortOf({ effort, budgetTokens }: NeutralReasoning): Effort | null {
  if (budgetTokens === 0) return null
  if (effort !== null || budgetTokens === null) return effort
  if (budgetTokens <= 4096) return 'low'
  return budgetTokens <= 16_384 ? 'medium' : 'high'
}

/** Members that both languages have in the same form, and that pass between them under their names. */
const hintMembers = Object.keys(hints)

export const readHints = (body: Readonly<JsonObject>): Map<string, Stated<unknown>> => gathered(body, hintMembers)

export function writeHints(given: NeutralRequest['hints']): JsonObject {
  const members: JsonObject = {}
  for (const [name, { value }] of given ?? []) if (hintMembers.includes(name)) members[name] = value
  return members
}

/** The newer of two names counts. */
export const readEndUser = (body: Readonly<JsonObject>): Stated<string> | null =>
  statedString(body.safety_identifier, 'safety_identifier') ?? statedString(body.user, 'user')

const schemaMembers = new Set(['name', 'description', 'schema', 'strict', 'type'])

/** Reads `{type, …}` where a schema's members stand in `schema`: an inner object (chat) or the same one (responses). */
export function readFormat(format: Readonly<JsonObject>, schema: unknown, at: FieldPath): Stated<NeutralOutput> {
  const type = stringAt(format.type, `${at}.type`)
  if (type === 'text') return { value: { form: 'text' }, at }
  if (type === 'json_object') return { value: { form: 'json' }, at }
  if (type !== 'json_schema') throw unsupported(`${at}.type`, 'is none of text, json_object, json_schema')
  if (!isObject(schema) || !isObject(schema.schema)) throw malformed(at, 'a json_schema with its schema')
  onlyMembers(schema, at, schemaMembers)
  return {
    value: {
      form: 'schema',
      name: textOf(schema.name),
      description: textOf(schema.description),
      schema: schema.schema,
      strict: typeof schema.strict === 'boolean' ? schema.strict : null,
    },
    at,
  }
}

/** The members beside `type: json_schema`; the language requires a name. */
export const schemaWords = (output: NeutralOutput & { form: 'schema' }): JsonObject => ({
  name: output.name ?? 'output',
  ...(output.description !== null && { description: output.description }),
  schema: output.schema,
  ...(output.strict !== null && { strict: output.strict }),
})

export const audioFormats: ReadonlyMap<string, string> = new Map([
  ['audio/mpeg', 'mp3'],
  ['audio/mp3', 'mp3'],
  ['audio/wav', 'wav'],
  ['audio/x-wav', 'wav'],
  ['audio/wave', 'wav'],
])

/** A file that has no name needs one here. */
export const fileName = (title: string | undefined, mediaType: string): string =>
  title ?? `document.${mediaType === 'text/plain' ? 'txt' : (mediaType.split('/')[1]?.split(';')[0] ?? 'bin')}`

/** Neither language can mark a result as an error: its text says so. */
export const errorText = (text: string, isError: boolean): string => (isError ? `Error: ${text}` : text)
