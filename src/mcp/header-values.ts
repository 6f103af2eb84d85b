/**
 * Parts of a message that HTTP headers repeat (2026-07-28, Streamable HTTP): how a value is encoded, and the arguments of a
 * tool that its schema marks with `x-mcp-header`, each repeated by a header `Mcp-Param-<name>`.
 */
import type { Json } from './connection.ts'
import { isJson } from './protocol.ts'

const plain = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/
const marked = /^=\?base64\?(.*)\?=$/
const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/
/** The limits of what is looked at in a schema. */
const deepest = 32
const mostNodes = 10_000
const mostHeaders = 64

/** Value Encoding. */
export const encodedHeader = (value: string): string =>
  plain.test(value) && !marked.test(value) ? value : `=?base64?${Buffer.from(value, 'utf8').toString('base64')}?=`

/** Null where the encoding is broken. */
export function decodedHeader(value: string): string | null {
  const [, encoded] = marked.exec(value) ?? []
  if (encoded === undefined) return value
  const bytes = Buffer.from(encoded, 'base64')
  const text = bytes.toString('utf8')
  return bytes.toString('base64') === encoded && Buffer.from(text, 'utf8').equals(bytes) ? text : null
}

/** An argument that a header repeats. */
export interface MarkedArgument {
  /** The members that lead to it. */
  readonly path: readonly string[]
  /** The whole name of the header, in lower case. */
  readonly header: string
}

/** The marked arguments of a tool; null when a mark is not allowed, and with it the tool. */
export function markedArguments({ inputSchema }: Json): readonly MarkedArgument[] | null {
  if (!mentionsMark(inputSchema)) return []
  const found: MarkedArgument[] = []
  let nodes = 0
  let isAllowed = true
  /** `path`: null once the value can no longer be reached by `properties` alone. */
  const visit = (schema: unknown, path: readonly string[] | null, depth: number): void => {
    nodes += 1
    if (depth > deepest || nodes > mostNodes) isAllowed = false
    if (!isAllowed || typeof schema !== 'object' || schema === null) return
    if (Array.isArray(schema)) {
      for (const part of schema) visit(part, null, depth + 1)
      return
    }
    if (!isJson(schema)) return
    const mark = schema['x-mcp-header']
    if (mark !== undefined) take(schema, mark, path)
    for (const [name, part] of Object.entries(schema)) {
      if (name === 'properties' && isJson(part) && path !== null)
        for (const [property, inner] of Object.entries(part)) visit(inner, [...path, property], depth + 1)
      else visit(part, null, depth + 1)
    }
  }
  const take = ({ type }: Json, mark: unknown, path: readonly string[] | null) => {
    const header = typeof mark === 'string' && token.test(mark) ? `mcp-param-${mark.toLowerCase()}` : null
    const isPrimitive = type === 'string' || type === 'integer' || type === 'boolean'
    if (header === null || path === null || path.length === 0 || !isPrimitive) isAllowed = false
    else if (found.some((other) => other.header === header) || found.length >= mostHeaders) isAllowed = false
    else found.push({ path, header })
  }
  visit(inputSchema, [], 0)
  return isAllowed ? found : null
}

/** Most tools mark nothing, and looking for it is quicker than reading a schema part by part. */
function mentionsMark(schema: unknown): boolean {
  try {
    return JSON.stringify(schema)?.includes('"x-mcp-header"') === true
  } catch (error) {
    // Nested deeper than any tool that may be listed.
    if (error instanceof RangeError) return false
    throw error
  }
}

/** The headers of a call with these arguments. */
export function argumentHeaders(marks: readonly MarkedArgument[], given: unknown): Record<string, string> {
  const headers: Record<string, string> = {}
  for (const { path, header } of marks) {
    const text = textOf(valueAt(given, path))
    if (text !== null) headers[header] = encodedHeader(text)
  }
  return headers
}

/** The first header that does not say what the argument is; null when all do. */
export function mismatchedHeader(
  marks: readonly MarkedArgument[],
  given: unknown,
  headers: Pick<Headers, 'get'>,
): string | null {
  const differs = ({ path, header }: MarkedArgument) => {
    const value = valueAt(given, path)
    const text = textOf(value)
    const sent = headers.get(header)
    if (text === null || sent === null) return (text === null) !== (sent === null)
    const decoded = decodedHeader(sent)
    return decoded !== text && !(isNumeric(value) && decoded !== null && Number(decoded) === Number(text))
  }
  return marks.find(differs)?.header ?? null
}

function valueAt(given: unknown, path: readonly string[]): unknown {
  let value = given
  for (const member of path) value = isJson(value) && Object.hasOwn(value, member) ? value[member] : undefined
  return value
}

const isNumeric = (value: unknown): boolean => typeof value === 'number' || JSON.isRawJSON(value)

/** Null for what no header repeats. */
function textOf(value: unknown): string | null {
  if (typeof value === 'string') return value
  if (JSON.isRawJSON(value)) return value.rawJSON
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : null
}
