/** What both sides of the gateway go by, towards callers and towards servers (Model Context Protocol). */
import type { Json } from './connection.ts'

/** The versions of the protocol that are spoken, the newest first. */
export const protocolVersions = ['2025-11-25', '2025-06-18'] as const

/** What a server may ask of a caller, by the capability that the caller must have declared. */
export const askable: ReadonlyMap<string, string> = new Map([
  ['sampling/createMessage', 'sampling'],
  ['elicitation/create', 'elicitation'],
  ['roots/list', 'roots'],
])

/**
 * What of a server's request the caller has not declared that it takes, in words; null where it takes all of it: tools of
 * `sampling/createMessage` (2025-11-25, Sampling, Capabilities) and the modes of `elicitation/create` (Elicitation,
 * Capabilities: without any named, forms alone).
 */
export function undeclared(method: string, params: Json, capabilities: Json): string | null {
  if (method === 'sampling/createMessage') {
    const sampling = isJson(capabilities.sampling) ? capabilities.sampling : {}
    const hasTools = params.tools !== undefined || params.toolChoice !== undefined
    return hasTools && sampling.tools === undefined ? 'The caller takes no tools with sampling' : null
  }
  if (method !== 'elicitation/create') return null
  const modes = isJson(capabilities.elicitation) ? capabilities.elicitation : {}
  const mode = params.mode ?? 'form'
  if (mode === 'form' ? modes.form !== undefined || modes.url === undefined : mode === 'url' && modes.url !== undefined)
    return null
  return 'The caller does not take this mode of elicitation'
}

const passable: ReadonlySet<string> = new Set(askable.values())

/** Those capabilities of a caller that a server can make use of through the gateway. */
export const passableOf = (capabilities: Json): Json =>
  Object.fromEntries(Object.entries(capabilities).filter(([name]) => passable.has(name)))

export const isJson = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !JSON.isRawJSON(value)
