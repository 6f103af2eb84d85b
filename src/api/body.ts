/** Reads and checks what comes in: size, encoding, JSON, depth, then the route's zod schema. Nothing of it is echoed. */
import { z } from 'zod'
import { Failure, notAnObject } from '../failure.ts'
import { holdsSecret } from '../identity/secret.ts'
import { isRepetitive, repeatedMember } from '../lib/json/json-members.ts'
import { useFieldAdvice } from '../lib/use-field-advice.ts'

/** The limits of a request (handbook/reference/http.md). */
export const bodyLimitBytes = 10 * 1024 * 1024
const depthLimit = 64

/** The bytes of the body, for any framing. Throws `request_too_large` as soon as the limit is passed. */
export async function readBytes(request: Request, limit = bodyLimitBytes): Promise<Uint8Array> {
  const announced = Number(request.headers.get('content-length') ?? 0)
  if (announced > limit) throw new Failure('request_too_large')
  if (request.body === null) return new Uint8Array()
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of request.body) {
    size += chunk.byteLength
    if (size > limit) throw new Failure('request_too_large')
    chunks.push(chunk)
  }
  return chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks)
}

/** Throws `unsupported_media_type` unless the request's content type is the expected one, in UTF-8. */
export function requireContentType(request: Request, expected: string): void {
  const [type = '', ...parameters] = (request.headers.get('content-type') ?? '').toLowerCase().split(';')
  const charset = parameters.map((parameter) => parameter.trim()).find((parameter) => parameter.startsWith('charset='))
  const utf8 = charset === undefined || /^charset="?utf-?8"?$/.test(charset)
  if (type.trim() !== expected || !utf8) {
    throw new Failure('unsupported_media_type', { message: `Send the body as ${expected} in UTF-8` })
  }
}

/**
 * The JSON object in these bytes; no bytes at all stand for an empty one. Throws `invalid_json`, naming the member where
 * an object has two of one name: another parser takes the first of them (RFC 8259 section 4). Throws `json_too_deep`.
 */
export function parseJsonObject(bytes: Uint8Array): object {
  if (bytes.byteLength === 0) return {}
  let value: unknown
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    if (jsonDepth(text) > depthLimit) throw new Failure('json_too_deep')
    value = JSON.parse(text)
    if (isRepetitive(text, value)) throw givenTwice(repeatedMember(text) ?? [])
  } catch (error) {
    // The parser's own message quotes the text, so it is not kept.
    throw error instanceof Failure ? error : new Failure('invalid_json')
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new Failure('invalid_json', { message: notAnObject })
  }
  return value
}

function givenTwice(path: readonly string[]): Failure {
  const param = dotted(path)
  const what = param === '' ? 'A member' : `The member ${param}`
  return new Failure('invalid_json', { message: `${what} of the body is given more than once: send it once`, param })
}

/** How deep brackets and braces nest outside strings, looked at before parsing because parsing recurses. */
function jsonDepth(text: string): number {
  let depth = 0
  let deepest = 0
  let quoted = false
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index)
    if (quoted) {
      if (code === 92 /* \ */) index += 1
      else if (code === 34 /* " */) quoted = false
    } else if (code === 34) quoted = true
    else if (code === 91 /* [ */ || code === 123 /* { */) deepest = Math.max(deepest, ++depth)
    else if (code === 93 /* ] */ || code === 125 /* } */) depth -= 1
  }
  return deepest
}

/** The query as an object. Throws `invalid_parameter` where a name is given twice. */
export function readQuery(url: URL): Record<string, string> {
  const query = new Map<string, string>()
  for (const [name, value] of url.searchParams) {
    if (query.has(name))
      throw new Failure('invalid_parameter', { message: 'Given more than once', param: dotted([name]) })
    query.set(name, value)
  }
  return Object.fromEntries(query)
}

useFieldAdvice()

const issueSchema = z.looseObject({
  code: z.string().optional(),
  message: z.string(),
  path: z.array(z.union([z.string(), z.number()])),
  keys: z.array(z.string()).default([]),
})

/**
 * The failure that an issue of zod means: `unknown_parameter` for a field that the schema does not have,
 * `invalid_parameter` for the rest. `param` is the dotted path; the message says what was expected and never what was
 * sent.
 */
export function failureOfIssue(issue: unknown): Failure {
  const read = issueSchema.safeParse(issue)
  if (!read.success) return new Failure('invalid_parameter')
  const { code, message, path, keys } = read.data
  if (code === 'unrecognized_keys') return new Failure('unknown_parameter', { param: dotted([...path, keys[0] ?? '']) })
  return new Failure('invalid_parameter', { message, param: dotted(path) })
}

/** The path as it was sent, up to a name that holds a secret. */
function dotted(path: readonly PropertyKey[]): string {
  const names = path.map(String)
  const secret = names.findIndex(holdsSecret)
  return (secret < 0 ? names : names.slice(0, secret)).join('.').slice(0, 256)
}
