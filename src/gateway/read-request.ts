/**
 * Reads the body once: its bytes, which are what is forwarded, and the few facts the gateway acts on. Refuses what is too
 * large (at once where Content-Length says so, otherwise while it is counted), not UTF-8, not a JSON object, nested too
 * deep, or ambiguous because a member is given twice.
 */
import { Failure } from '../failure.ts'
import { type JsonMembers, jsonMembers } from '../lib/json-members.ts'
import { readBounded } from './bounded.ts'
import type { Exchange, Gateway } from './exchange.ts'

const maxDepth = 64
/** Keeps a byte order mark, which JSON does not allow, so that text and bytes always say the same. */
const strictUtf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

export async function readRequest(exchange: Exchange, { settings }: Gateway): Promise<void> {
  const bytes = exchange.body ?? (await readBody(exchange.request, settings.body_limit_bytes))
  const text = decode(bytes)
  const members = membersOf(text)
  const body = parse(text)
  if (members.repeated) {
    throw new Failure('invalid_json', { message: 'The request body names one of its members twice' })
  }
  exchange.body = bytes
  exchange.members = members
  exchange.parsed = body
  exchange.facts = exchange.dialect.read(body)
}

async function readBody(request: Request, limit: number): Promise<Uint8Array> {
  const tooLarge = () =>
    new Failure('request_too_large', { message: `The request body is larger than the limit of ${limit} bytes` })
  const declared = request.headers.get('content-length')
  if (declared !== null) {
    if (Number(declared) > limit) throw tooLarge()
    return received(request.bytes())
  }
  if (request.body === null) return new Uint8Array(0)
  const bytes = await received(readBounded(request.body.getReader(), limit))
  if (bytes === null) throw tooLarge()
  return bytes
}

/** A body that breaks off has nobody behind it any more. */
async function received<Bytes>(reading: Promise<Bytes>): Promise<Bytes> {
  try {
    return await reading
  } catch (thrown) {
    throw new Failure('client_left', { cause: thrown })
  }
}

function decode(bytes: Uint8Array): string {
  try {
    return strictUtf8.decode(bytes)
  } catch (thrown) {
    throw new Failure('invalid_json', { cause: thrown })
  }
}

function membersOf(text: string): JsonMembers {
  try {
    return jsonMembers(text, maxDepth)
  } catch (thrown) {
    throw new Failure('json_too_deep', { cause: thrown })
  }
}

function parse(text: string): Record<string, unknown> {
  let body: unknown
  try {
    body = JSON.parse(text)
  } catch (thrown) {
    throw new Failure('invalid_json', { cause: thrown })
  }
  if (!isObject(body)) throw new Failure('invalid_json')
  return body
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
