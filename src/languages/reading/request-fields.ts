/** What the text dialects have in common when they read a request. */
import { Failure } from '../../failure.ts'
import type { RequestFacts } from '../dialect.ts'
import { type MemberRole, type MemberTable, membersWhere } from '../member-table.ts'
import { isGiven, isObject, type JsonObject } from './json-value.ts'

const invalid = (param: string, message: string) => new Failure('invalid_parameter', { param, message })

/** The model's id. Throws `invalid_parameter` if there is none. */
export function modelOf(body: Readonly<JsonObject>): string {
  const { model } = body
  if (typeof model !== 'string' || model === '') throw invalid('model', 'model must be a non-empty string')
  return model
}

/** A number that bounds the cost of a request; null if it is left out. Throws if it is not a whole number. */
export function wholeNumber(body: Readonly<JsonObject>, name: string, least: number): number | null {
  const value = body[name]
  if (value === undefined || value === null) return null
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < least) {
    const range = least < 0 ? '' : ` of at least ${least}`
    throw invalid(name, `${name} must be a whole number${range}`)
  }
  return value
}

type Fields = Pick<RequestFacts, 'stream' | 'outputLimit' | 'choices' | 'serviceTier' | 'sessionId'>

/**
 * Reads what the gateway acts on, by the roles of a language's members. `leastLimit`: the smallest output limit that is
 * accepted; absent: any. Throws `invalid_parameter` naming the member.
 */
export function fieldReader(
  table: MemberTable,
  leastLimit = Number.MIN_SAFE_INTEGER,
): (body: Readonly<JsonObject>) => Fields {
  const membersWith = (wanted: MemberRole) => membersWhere(table, ({ role }) => role === wanted)
  const [stream = ''] = membersWith('stream')
  const limits = membersWith('output limit')
  const choices = membersWith('choices')
  const tiers = membersWith('service tier')
  const [session = ''] = membersWith('session')
  return (body) => {
    const fields: Fields = {
      stream: body[stream] === true,
      outputLimit: largestLimit(body, limits, leastLimit),
      choices: 1,
      sessionId: null,
    }
    for (const name of choices) {
      fields.choices = Math.max(fields.choices, wholeNumber(body, name, table[name]?.least ?? 1) ?? 1)
    }
    for (const name of tiers) {
      const value = body[name]
      // A tier that is not a string is unknown.
      const tier = typeof value === 'string' ? value : ''
      if (isGiven(value) && value !== table[name]?.usual) fields.serviceTier = { name: tier, param: name }
    }
    fields.sessionId = sessionOf(body[session], session)
    return fields
  }
}

/**
 * The largest limit that is given, because a provider may follow any; null if one of them sets no limit. A negative
 * number means no limit to some providers, and others ignore a 0: neither bounds the cost of a request.
 */
function largestLimit(body: Readonly<JsonObject>, names: readonly string[], least: number): number | null {
  let largest: number | null = null
  for (const name of names) {
    const limit = wholeNumber(body, name, least)
    if (limit === null) continue
    if (limit < 1) return null
    largest = Math.max(largest ?? 0, limit)
  }
  return largest
}

function sessionOf(value: unknown, name: string): string | null {
  if (value === undefined || value === null) return null
  if (typeof value !== 'string') throw invalid(name, `${name} must be a string`)
  return value
}

/**
 * Parts whose tokens the body's bytes do not bound: fetched content, and images and documents, which are charged by
 * their size in pixels and pages.
 */
const beyondParts = new Set([
  'image',
  'image_url',
  'input_image',
  'document',
  'file',
  'input_file',
  'container_upload',
  'item_reference',
  'computer_call_output',
])

/** Whether a part at any depth brings more input than its bytes show. */
export function reachesBeyond(value: unknown, depth = 0): boolean {
  if (typeof value !== 'object' || value === null || depth > 64) return false
  if (Array.isArray(value)) {
    for (const element of value) if (reachesBeyond(element, depth + 1)) return true
    return false
  }
  if (!isObject(value)) return false
  if (typeof value.type === 'string' && beyondParts.has(value.type) && !isPlainDocument(value)) return true
  for (const name in value) {
    const inner = value[name]
    if (typeof inner === 'object' && inner !== null && reachesBeyond(inner, depth + 1)) return true
  }
  return false
}

/** A document whose text is in the body. */
const isPlainDocument = ({ type, source }: JsonObject): boolean =>
  type === 'document' && isObject(source) && (source.type === 'text' || source.type === 'content')

/** Seconds since the epoch at which an exchange began, from its id (UUIDv7, RFC 9562 section 5.7). */
export const startedAt = (exchangeId: string): number =>
  Math.floor(Number.parseInt(exchangeId.slice(0, 8) + exchangeId.slice(9, 13), 16) / 1000)

/** An exchange's id in the form of a provider's id, after its prefix. */
export const plainId = (exchangeId: string): string => exchangeId.replaceAll('-', '')
