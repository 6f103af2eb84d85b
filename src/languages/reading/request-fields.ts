/** What the text dialects read alike of a request. */
import { Failure } from '../../failure.ts'
import type { RequestFacts } from '../dialect.ts'
import { isObject, type JsonObject, objectsOf } from './json-value.ts'

const invalid = (param: string, message: string) => new Failure('invalid_parameter', { param, message })

/** The model's id. Throws `invalid_parameter` where there is none. */
export function modelOf(body: Readonly<JsonObject>): string {
  const { model } = body
  if (typeof model !== 'string' || model === '') throw invalid('model', 'model must be a non-empty string')
  return model
}

/** A number that bounds what a request may cost; null where it is left out. Throws where it is no whole number. */
export function wholeNumber(body: Readonly<JsonObject>, name: string, least: number): number | null {
  const value = body[name]
  if (value === undefined || value === null) return null
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < least) {
    const range = least < 0 ? '' : ` of at least ${least}`
    throw invalid(name, `${name} must be a whole number${range}`)
  }
  return value
}

/**
 * A limit on the output; null where there is none. A negative number means no limit to some providers, and others ignore
 * a 0: neither bounds what a request may cost.
 */
export function outputLimitOf(
  body: Readonly<JsonObject>,
  name: string,
  least = Number.MIN_SAFE_INTEGER,
): number | null {
  const limit = wholeNumber(body, name, least)
  return limit === null || limit < 1 ? null : limit
}

/** The service tier that a member names. What is no string is a tier that nobody knows. */
export function serviceTierOf(value: unknown, param = 'service_tier'): Pick<RequestFacts, 'serviceTier'> {
  if (value === undefined || value === null) return {}
  return { serviceTier: { name: typeof value === 'string' ? value : '', param } }
}

export function sessionIdOf(body: Readonly<JsonObject>): string | null {
  const { session_id: sessionId } = body
  if (sessionId === undefined || sessionId === null) return null
  if (typeof sessionId !== 'string') throw invalid('session_id', 'session_id must be a string')
  return sessionId
}

/**
 * Parts whose tokens the body's bytes do not bound: what is fetched from elsewhere, and images and documents, which
 * cost by their size in pixels and pages.
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

/** A document whose text stands in the body. */
const isPlainDocument = ({ type, source }: JsonObject): boolean =>
  type === 'document' && isObject(source) && (source.type === 'text' || source.type === 'content')

/** What the tools that the provider runs itself may do. */
export interface HostedTools {
  /** The most uses of them all; 0 where there are none. */
  uses: number
  /** One of them has no maximum. */
  unbounded: boolean
}

/** Counts the provider's own tools by their `max_uses`; `isHosted` tells them from those the caller runs. */
export function hostedTools(tools: unknown, isHosted: (type: string) => boolean): HostedTools {
  let uses = 0
  let unbounded = false
  for (const { type, max_uses: most } of objectsOf(tools)) {
    if (typeof type !== 'string' || !isHosted(type)) continue
    if (typeof most === 'number' && Number.isSafeInteger(most) && most >= 0) uses += most
    else unbounded = true
  }
  return { uses, unbounded }
}

/** Seconds since the epoch at which an exchange began, as its id (UUIDv7, RFC 9562 section 5.7) tells. */
export const startedAt = (exchangeId: string): number =>
  Math.floor(Number.parseInt(exchangeId.slice(0, 8) + exchangeId.slice(9, 13), 16) / 1000)

/** An exchange's id as a provider would write one after its prefix. */
export const plainId = (exchangeId: string): string => exchangeId.replaceAll('-', '')
