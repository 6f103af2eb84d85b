/**
 * How what a server offers is named on the published surface, and back.
 *
 * A name is `<server>__<name>`. A server's name has no two underscores in a row and none at its ends, so the first two
 * in a row are where it ends: no two servers can offer the same name. A resource's address stays an address (RFC 3986):
 * `mcp://<server>/` before the server's own as it is, so that a template (RFC 6570) can be filled in as it was written.
 */
import type { Json } from '../connection.ts'
import { isJson } from './json-rpc.ts'

const separator = '__'
const scheme = 'mcp://'

/** What a server is asked for, by its own name of it. */
export interface OwnName {
  readonly server: string
  readonly name: string
}

export const publishedName = (server: string, name: string): string => `${server}${separator}${name}`

/** Null where it is no published name. */
export function ownName(published: string): OwnName | null {
  const at = published.indexOf(separator)
  return at <= 0 ? null : { server: published.slice(0, at), name: published.slice(at + separator.length) }
}

export const publishedUri = (server: string, uri: string): string => `${scheme}${server}/${uri}`

/** Null where it is no published address. */
export function ownUri(published: string): OwnName | null {
  const at = published.indexOf('/', scheme.length)
  if (!published.startsWith(scheme) || at < 0) return null
  return { server: published.slice(scheme.length, at), name: published.slice(at + 1) }
}

/** What is offered, as callers see it: its name or address mapped, all else as the server wrote it. */
export function publishedOffer(server: string, offer: Json): Json {
  const published: Json = { ...offer }
  if (typeof offer.name === 'string') published.name = publishedName(server, offer.name)
  for (const member of ['uri', 'uriTemplate']) {
    const uri = offer[member]
    if (typeof uri === 'string') published[member] = publishedUri(server, uri)
  }
  return published
}

/** Changes the addresses of resources within a result (links, what is embedded, what was read) to published ones. */
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
