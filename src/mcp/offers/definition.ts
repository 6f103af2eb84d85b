/**
 * What an MCP server offers, by the digest of its whole definition: protection against definitions that change after
 * approval (Model Context Protocol, security best practices). Gateways and control plane must count alike.
 *
 * - The digest is taken of canonical JSON: members in the order of their names, all of them, those that nobody has heard
 *   of too. Of a resource, its size and when it was last changed are left out where they are a number and a time: they
 *   say what is in it, not what it is, and whatever else stands there is read by callers as it is.
 * - A tool or prompt is the same one by its name, a resource by its URI, a template by its URI template.
 */
import { createHash } from 'node:crypto'
import type { Json, OfferKind } from '../connection.ts'
import { isJson } from '../protocol.ts'

export const offerKinds = ['tool', 'prompt', 'resource', 'resource_template'] as const satisfies readonly OfferKind[]

/** A definition that is longer is never shown: nobody could read it before approving. */
export const definitionLimitBytes = 128 * 1024
/** Longer names are none that a person can tell apart. */
export const offerNameLimit = 1024

export interface Definition {
  kind: OfferKind
  /** What it is known by: a name, a URI or a URI template. */
  name: string
  /** Of kind and canonical text, SHA-256 in hex. */
  digest: string
  /** Canonical JSON. */
  text: string
}

const deepest = 64

/** Null for what cannot be judged: it has no name, is too long or nested too deep. */
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

/** Names one thing that one server offers, whatever its definition. */
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

/** Null where it is nested too deep. */
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
