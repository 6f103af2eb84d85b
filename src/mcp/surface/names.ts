/**
 * Maps names of offers to published names and back.
 *
 * A published name is `<server>__<name>`. A server name has no two underscores in a row and none at its ends
 * (`serverName`), so the first two mark its end, and no two servers publish the same name. A resource address stays a
 * URI (RFC 3986): `mcp://<server>/` followed by the server's own, so that a template (RFC 6570) can still be expanded.
 */
import type { Json } from '../connection.ts'
import { isJson } from '../protocol.ts'

const separator = '__'
const scheme = 'mcp://'

/** A server's own name of an offer. */
export interface OwnName {
  readonly server: string
  readonly name: string
}

export const publishedName = (server: string, name: string): string => `${server}${separator}${name}`

/** Null when it is no published name. */
export function ownName(published: string): OwnName | null {
  const at = published.indexOf(separator)
  return at <= 0 ? null : { server: published.slice(0, at), name: published.slice(at + separator.length) }
}

export const publishedUri = (server: string, uri: string): string => `${scheme}${server}/${uri}`

/** Null when it is no published address. */
export function ownUri(published: string): OwnName | null {
  const at = published.indexOf('/', scheme.length)
  if (!published.startsWith(scheme) || at < 0) return null
  return { server: published.slice(scheme.length, at), name: published.slice(at + 1) }
}

/** An offer as callers see it: name or address mapped, everything else unchanged. */
export function publishedOffer(server: string, offer: Json): Json {
  const published: Json = { ...offer }
  if (typeof offer.name === 'string') published.name = publishedName(server, offer.name)
  for (const member of ['uri', 'uriTemplate']) {
    const uri = offer[member]
    if (typeof uri === 'string') published[member] = publishedUri(server, uri)
  }
  return published
}

/** Changes resource addresses in a result (links, embedded and read resources) to published ones. */
export function publishUris(server: string, result: Json): void {
  const publish = (holder: unknown) => {
    if (isJson(holder) && typeof holder.uri === 'string') holder.uri = publishedUri(server, holder.uri)
  }
  const publishBlock = (block: unknown) => {
    if (!isJson(block)) return
    if (block.type === 'resource_link') publish(block)
    else if (block.type === 'resource') publish(block.resource)
  }
  for (const content of listOf(result.contents)) publish(content)
  for (const block of listOf(result.content)) publishBlock(block)
  for (const message of listOf(result.messages)) {
    if (isJson(message)) for (const block of [message.content].flat()) publishBlock(block)
  }
}

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])
