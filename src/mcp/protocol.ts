/**
 * Protocol rules for both sides of the gateway, towards callers and servers (Model Context Protocol).
 *
 * Versions are of two generations (2026-07-28, Versioning, Terminology): *legacy* ones begin a session by `initialize`;
 * a *modern* one states version, capabilities and log level in the `_meta` of every request.
 */
import type { Json } from './connection.ts'

/** The supported versions that begin with `initialize`, newest first. */
export const protocolVersions = ['2025-11-25', '2025-06-18'] as const

/** The supported version without sessions. */
export const modernVersion = '2026-07-28'

/** Every supported version, newest first. */
export const supportedVersions = [modernVersion, ...protocolVersions] as const

/** Reserved members of `_meta` (2026-07-28, Base Protocol, `_meta`). */
export const metaKeys = {
  version: 'io.modelcontextprotocol/protocolVersion',
  capabilities: 'io.modelcontextprotocol/clientCapabilities',
  clientInfo: 'io.modelcontextprotocol/clientInfo',
  serverInfo: 'io.modelcontextprotocol/serverInfo',
  logLevel: 'io.modelcontextprotocol/logLevel',
  subscriptionId: 'io.modelcontextprotocol/subscriptionId',
} as const

/** Error codes of 2026-07-28 (Base Protocol, Error Codes), and two that it forbids. */
export const mcpCodes = {
  headerMismatch: -32_020,
  missingCapability: -32_021,
  unsupportedVersion: -32_022,
  /** Only before 2026-07-28, which has -32602 instead. */
  legacyResourceNotFound: -32_002,
  /** Only in 2025-11-25: `data.elicitations` holds what the caller must do before it sends the request again. */
  legacyUrlElicitation: -32_042,
} as const

/** The levels of RFC 5424, the least urgent first. */
export const logLevels: readonly string[] = [
  'debug',
  'info',
  'notice',
  'warning',
  'error',
  'critical',
  'alert',
  'emergency',
]

/** What a request is about: the address of a resource, otherwise the name of a tool or prompt. */
export const requestedName = (method: string, params: Json): unknown =>
  method === 'resources/read' ? params.uri : params.name

/** The requests that may be answered by what the server needs first (Multi Round-Trip Requests). */
export const inputMethods: ReadonlySet<string> = new Set(['tools/call', 'prompts/get', 'resources/read'])

export const listChanges: ReadonlySet<string> = new Set([
  'notifications/tools/list_changed',
  'notifications/prompts/list_changed',
  'notifications/resources/list_changed',
])

/** What a server may request of a caller, by the capability that the caller must have declared. */
export const callerMethods: ReadonlyMap<string, string> = new Map([
  ['sampling/createMessage', 'sampling'],
  ['elicitation/create', 'elicitation'],
  ['roots/list', 'roots'],
])

/**
 * States which part of a server's request the caller has not declared; null when it declared all: tools of
 * `sampling/createMessage` (2025-11-25, Sampling, Capabilities) and the modes of `elicitation/create` (Elicitation,
 * Capabilities: forms only when none is named).
 */
export function undeclaredPart(method: string, params: Json, capabilities: Json): string | null {
  if (method === 'sampling/createMessage') {
    const sampling = isJson(capabilities.sampling) ? capabilities.sampling : {}
    const hasTools = params.tools !== undefined || params.toolChoice !== undefined
    return hasTools && sampling.tools === undefined ? 'The caller does not support tools in sampling' : null
  }
  if (method !== 'elicitation/create') return null
  const modes = isJson(capabilities.elicitation) ? capabilities.elicitation : {}
  const mode = params.mode ?? 'form'
  if (mode === 'form' ? modes.form !== undefined || modes.url === undefined : mode === 'url' && modes.url !== undefined)
    return null
  return 'The caller does not support this mode of elicitation'
}

/** The caller capabilities that pass through the gateway, and the members that each may have. */
const passable = {
  sampling: ['context', 'tools'],
  elicitation: ['form', 'url'],
  roots: ['listChanged'],
} as const

/** Keeps only these capabilities, because no policy reads the others. */
export const forwardedCapabilities = (capabilities: Json): Json =>
  Object.fromEntries(
    Object.entries(passable)
      .filter(([name]) => capabilities[name] !== undefined)
      .map(([name, members]) => [name, declaredOf(capabilities[name], members)]),
  )

function declaredOf(capability: unknown, members: readonly string[]): Json {
  if (!isJson(capability)) return {}
  const declared = members.filter((member) => isJson(capability[member]) || capability[member] === true)
  return Object.fromEntries(declared.map((member) => [member, capability[member] === true ? true : {}]))
}

export const isJson = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !JSON.isRawJSON(value)
