/**
 * The output format of a request (handbook/reference/http.md): `response_format` of chat and responses, and
 * `text.format` of responses, which is the same with the schema's members beside the type.
 */
import { Failure } from '../../failure.ts'
import { isObject } from './json-value.ts'

const types = ['text', 'json_object', 'json_schema']

const wrong = (param: string, rule: string) => new Failure('invalid_parameter', { param, message: `${param} ${rule}` })

/** Throws `invalid_parameter`, naming the field, for a `response_format` of another form; null counts as absent. */
export function checkResponseFormat(format: unknown): void {
  const at = 'response_format'
  const schemaAt = `${at}.json_schema`
  const given = typeOf(format, at)
  if (given?.type !== 'json_schema') return
  if (!isObject(given.json_schema)) throw wrong(schemaAt, 'must be an object with name and schema')
  checkSchema(given.json_schema, schemaAt)
}

/** The same for `text.format`. */
export function checkTextFormat(format: unknown): void {
  const at = 'text.format'
  const given = typeOf(format, at)
  if (given?.type === 'json_schema') checkSchema(given, at)
}

function typeOf(format: unknown, at: string): Readonly<Record<string, unknown>> | null {
  if (format === undefined || format === null) return null
  if (!isObject(format)) throw wrong(at, 'must be an object with a type')
  if (!types.some((type) => type === format.type)) throw wrong(`${at}.type`, `must be one of ${types.join(', ')}`)
  return format
}

function checkSchema({ name, strict, schema }: Readonly<Record<string, unknown>>, at: string): void {
  if (typeof name !== 'string' || name === '') throw wrong(`${at}.name`, 'must be a text that names the schema')
  if (!isObject(schema)) throw wrong(`${at}.schema`, 'must be a JSON schema, which is an object')
  if (strict !== undefined && strict !== null && typeof strict !== 'boolean') {
    throw wrong(`${at}.strict`, 'must be true or false')
  }
}
