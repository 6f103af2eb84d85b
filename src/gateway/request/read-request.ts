/**
 * Reads the body once: its bytes, which are forwarded, and the few fields that the gateway uses. Refuses a body that is
 * too large, of the wrong type, not UTF-8, not a JSON object or form, nested too deep, or ambiguous because of a
 * duplicate member.
 */
import type { Settings } from '../../config.ts'
import { Failure, notAnObject } from '../../failure.ts'
import { families } from '../../languages/families.ts'
import { type JsonObject, parseObject } from '../../languages/reading/json-value.ts'
import { readArgumentsExactly } from '../../languages/reading/texts/exact-arguments.ts'
import { boundaryOf, type FormParts, formParts } from '../../lib/http/multipart.ts'
import { type JsonMembers, jsonMembers } from '../../lib/json/json-members.ts'
import type { Gateway } from '../context.ts'
import type { Exchange } from '../exchange.ts'
import { checkRequestId } from '../request-id.ts'
import { readBody } from './read-body.ts'

const maxDepth = 64
/** Room for the boundaries and fields of a form in addition to its file. */
const formOverheadBytes = 1024 * 1024
/** Keeps a byte order mark, which JSON does not allow, so that text and bytes always agree. */
const strictUtf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

export function readRequest(exchange: Exchange, { settings, clock }: Gateway): Promise<void> | void {
  checkRequestId(exchange)
  const { dialect, body } = exchange
  const isForm = families[dialect.family].files !== undefined
  const type = isForm ? formBoundary(exchange) : jsonType(exchange)
  const read = isForm ? readForm : readJson
  if (body !== null) return read(exchange, body, type, settings)
  exchange.bodyDeadline = clock.monotonic() + 1000 * settings.body_timeout_seconds
  const limit = isForm ? settings.upload_limit_bytes + formOverheadBytes : settings.body_limit_bytes
  return readBody(exchange, limit).then((bytes) => {
    exchange.bodyDeadline = null
    exchange.onCut = null
    exchange.body = bytes
    read(exchange, bytes, type, settings)
  })
}

/** The content type under which JSON is forwarded. A frame has none, and some clients leave it out. */
function jsonType({ body, contentType }: Exchange): string {
  if (contentType === 'application/json') return contentType
  const [type = ''] = contentType.split(';')
  if (body !== null || type === '') return 'application/json'
  if (/^application\/(?:[^\s/]+\+)?json$/i.test(type.trim())) return contentType
  throw new Failure('unsupported_media_type')
}

function formBoundary({ contentType }: Exchange): string {
  const boundary = boundaryOf(contentType)
  if (boundary !== null) return boundary
  throw new Failure('unsupported_media_type', { message: 'Send the body as multipart/form-data with its boundary' })
}

function readJson(exchange: Exchange, bytes: Uint8Array, type: string): void {
  const came = decode(bytes, 'invalid_json')
  const received = checked(came)
  const { dialect, request } = exchange
  const text = dialect.gatewayForm?.(came, request.url) ?? came
  const { members, body } = text === came ? received : checked(text)
  if (text !== came) exchange.body = new TextEncoder().encode(text)
  readArgumentsExactly(body, text)
  exchange.contentType = type
  exchange.members = members
  exchange.parsed = body
  exchange.facts = exchange.dialect.read(body)
}

/** An object and its outermost members. Throws `invalid_json` for anything else, or a member that is named twice. */
function checked(text: string): { members: JsonMembers; body: JsonObject } {
  const members = membersOf(text)
  const body = parseObject(text)
  if (body === null) throw invalidJson(text)
  if (members.repeated) {
    throw new Failure('invalid_json', { message: 'The request body names one of its members twice' })
  }
  return { members, body }
}

/** Distinguishes malformed JSON from a value that is no object. */
function invalidJson(text: string): Failure {
  try {
    JSON.parse(text)
  } catch {
    // The message of the parser quotes the text.
    return new Failure('invalid_json')
  }
  return new Failure('invalid_json', { message: notAnObject })
}

function readForm(exchange: Exchange, bytes: Uint8Array, boundary: string, settings: Settings): void {
  const form = partsOf(bytes, boundary)
  const body = fieldsOf(bytes, form, families[exchange.dialect.family].files ?? [], settings.upload_limit_bytes)
  exchange.members = form
  exchange.parsed = body
  exchange.facts = exchange.dialect.read(body)
}

function decode(bytes: Uint8Array, code: 'invalid_json' | 'invalid_form'): string {
  try {
    return strictUtf8.decode(bytes)
  } catch (thrown) {
    throw new Failure(code, { cause: thrown })
  }
}

/** The positions of the outermost members. Throws `json_too_deep`. */
export function membersOf(text: string): JsonMembers {
  try {
    return jsonMembers(text, maxDepth)
  } catch (thrown) {
    throw new Failure('json_too_deep', { cause: thrown })
  }
}

function partsOf(bytes: Uint8Array, boundary: string): FormParts {
  try {
    return formParts(bytes, boundary)
  } catch (thrown) {
    const reason = thrown instanceof RangeError ? thrown.message : 'it cannot be read'
    throw new Failure('invalid_form', { message: `The request body is not a valid form: ${reason}`, cause: thrown })
  }
}

/** A form as an object: the text of a field, `name[]` as the list of its texts, and the metadata of a file. */
function fieldsOf(bytes: Uint8Array, form: FormParts, files: readonly string[], fileLimit: number): JsonObject {
  const fields = new Map<string, unknown>()
  for (const { name, filename, contentType, span } of form.parts) {
    const content = bytes.subarray(...span)
    if (filename !== null && !files.includes(name)) {
      // Some readers treat such a part as text, so policies and edits must not miss it.
      const message = `${name} is a field and must have no filename: the only file of this form is ${files.join(', ')}`
      throw new Failure('invalid_form', { message, param: name })
    }
    if (filename !== null && content.length > fileLimit) {
      throw new Failure('request_too_large', { message: `The file is larger than the limit of ${fileLimit} bytes` })
    }
    const value =
      filename === null
        ? decode(content, 'invalid_form')
        : { filename, content_type: contentType, bytes: content.length }
    const present = fields.get(name)
    if (name.endsWith('[]')) fields.set(name, [...(Array.isArray(present) ? present : []), value])
    else if (present === undefined) fields.set(name, value)
    else throw new Failure('invalid_form', { message: `The form names ${name} twice`, param: name })
  }
  return Object.fromEntries(fields)
}
