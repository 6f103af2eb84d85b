/**
 * Finds out whether a server has sessions (2026-07-28, Versioning, Backward Compatibility; stdio and Streamable HTTP
 * likewise): it is asked by `server/discover`. An answer of that version says that it has none; any other answer, and
 * silence, that it begins them by `initialize`. A server that cannot be reached says neither.
 */
import { Failure } from '../../failure.ts'
import { version as productVersion } from '../../version.ts'
import type { Json, McpCaller } from '../connection.ts'
import { McpError } from '../mcp-error.ts'
import { isJson, mcpCodes, metaKeys, modernVersion, protocolVersions } from '../protocol.ts'
import type { Peer } from './peer.ts'
import { SessionWanted } from './transport.ts'

/** What is remembered of a server, so that it is asked once. */
export interface KnownGeneration {
  get(): 'modern' | 'legacy' | null
  /** Null: it is asked again. */
  set(generation: 'modern' | 'legacy' | null): void
}

export interface Discovered {
  readonly capabilities: Json
  readonly instructions: unknown
}

/** What each request to a server without sessions says of the caller. */
export const metadataOf = ({ capabilities }: Pick<McpCaller, 'capabilities'>): Json => ({
  [metaKeys.version]: modernVersion,
  [metaKeys.clientInfo]: { name: 'gatehouse', version: productVersion },
  [metaKeys.capabilities]: capabilities,
})

/** Null when the server has sessions. Rejects with a Failure when it cannot be reached or speaks no known version. */
export async function discover(peer: Peer, milliseconds: number, refused = false): Promise<Discovered | null> {
  const deadline = AbortSignal.timeout(milliseconds)
  try {
    const { supportedVersions, capabilities, instructions } = await peer.request(
      'server/discover',
      {},
      { signal: deadline },
    )
    const speaks = Array.isArray(supportedVersions) && supportedVersions.includes(modernVersion)
    if (speaks && isJson(capabilities)) return { capabilities, instructions }
    return null
  } catch (error) {
    if (deadline.aborted || error instanceof SessionWanted) return null
    // It may have changed its mind since: what it names now counts.
    if (error instanceof McpError && !refused && supported(error).includes(modernVersion))
      return await discover(peer, milliseconds, true)
    if (error instanceof McpError) return modernRefusal(error)
    // It answered what is neither a result nor an error of JSON-RPC.
    if (error instanceof Failure && error.code === 'mcp.server_error') return null
    throw error
  }
}

/** Null for an error that a server with sessions may give. Throws a Failure when no version is shared. */
function modernRefusal(error: McpError): null {
  const versions = supported(error)
  if (versions.length === 0 || protocolVersions.some((known) => versions.includes(known))) return null
  throw new Failure('mcp.server_error', { message: 'The MCP server supports none of the known protocol versions' })
}

/** The versions that a server names in its refusal of another; empty for any other error. */
const supported = ({ code, data }: McpError): readonly unknown[] =>
  code === mcpCodes.unsupportedVersion && isJson(data) && Array.isArray(data.supported) ? data.supported : []

/** Errors by which a server with sessions refuses a request without one; the request had no effect. */
const sessionCodes: ReadonlySet<number> = new Set([-32_000, -32_001, -32_600])

/** Whether an HTTP refusal shows that the server no longer is without sessions; `error`: its JSON-RPC error, if any. */
export const wantsSession = (status: number, error: McpError | null): boolean =>
  (status === 400 || status === 404 || status === 405) && (error === null || sessionCodes.has(error.code))
