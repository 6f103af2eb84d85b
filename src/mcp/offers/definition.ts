/**
 * Identifies what an MCP server offers by the digest of its whole definition, which protects against definitions that
 * change after approval (Model Context Protocol, security best practices). Gateways and control plane must compute it
 * alike.
 *
 * - The digest covers canonical JSON: all members sorted by name, unknown ones too. The size and last-modified time of
 *   a resource are left out if they are a number and a time, because they describe its contents; any other value there
 *   is read by callers and counts.
 * - A tool or prompt is identified by its name, a resource by its URI, a template by its URI template.
 */
import { createHash } from 'node:crypto'
import type { Json, OfferKind } from '../connection.ts'
import { isJson } from '../protocol.ts'

export const offerKinds = ['tool', 'prompt', 'resource', 'resource_template'] as const satisfies readonly OfferKind[]

/** A longer definition is never shown, because nobody could read it before approving. */
export const definitionLimitBytes = 128 * 1024
/** Longer names cannot be told apart by a person. */
export const offerNameLimit = 1024

export interface Definition {
  kind: OfferKind
  /** The identifier: a name, a URI or a URI template. */
  name: string
  /** SHA-256 of kind and canonical text, in hex. */
  digest: string
  /** Canonical JSON. */
  text: string
}

const deepest = 64

/** Null for an offer without a name, too long or nested too deep. */
export function definitionOf(kind: OfferKind, offer: unknown): Definition | null {
  if (!isJson(offer)) return null
  const name = offer[nameMember[kind]]
  if (typeof name !== 'string' || name === '' || name.length > offerNameLimit) return null
  const text = canonical(kind === 'resource' ? withoutContents(offer) : offer, 0)
  if (text === null || Buffer.byteLength(text) > definitionLimitBytes) return null
  return { kind, name, digest: digestOf(kind, text), text }
}

/** The digest of a definition's canonical text. */
export const digestOf = (kind: OfferKind, text: string): string =>
  createHash('sha256').update(`${kind}\n${text}`).digest('hex')

/** Identifies one offer of one server, whatever its definition. */
export const offerId = (serverId: string, kind: OfferKind, name: string): string =>
  createHash('sha256').update(`${serverId}\n${kind}\n${name}`).digest('hex')

const nameMember: Readonly<Record<OfferKind, string>> = {
  tool: 'name',
  prompt: 'name',
  resource: 'uri',
  resource_template: 'uriTemplate',
}

const timeForm = /^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:\d{2})?)?$/

function withoutContents({ size, ...offer }: Json): Json {
  const rest = size === undefined || typeof size === 'number' ? offer : { ...offer, size }
  const { annotations } = rest
  if (!isJson(annotations)) return rest
  const { lastModified, ...kept } = annotations
  const isTime = typeof lastModified === 'string' && timeForm.test(lastModified)
  return isTime ? { ...rest, annotations: kept } : rest
}

/** Null when it is nested too deep. */
function canonical(value: unknown, depth: number): string | null {
  if (depth > deepest) return null
  if (Array.isArray(value))
    return joined(
      '[',
      value.map((entry) => canonical(entry, depth + 1)),
      ']',
    )
  if (!isJson(value)) return JSON.stringify(value) ?? 'null'
  const members = Object.keys(value)
    .toSorted()
    .filter((name) => value[name] !== undefined)
    .map((name) => {
      const text = canonical(value[name], depth + 1)
      return text === null ? null : `${JSON.stringify(name)}:${text}`
    })
  return joined('{', members, '}')
}

const joined = (open: string, parts: readonly (string | null)[], close: string): string | null =>
  parts.includes(null) ? null : `${open}${parts.join()}${close}`
