/**
 * The session of a caller, made from what the caller sends, so that any worker of any gateway can make it.
 *
 * - A caller of 2026-07-28 has none: every request says what the caller can do. All requests of one owner that say the
 *   same share what this process keeps for them (`McpSession`).
 * - An older caller sends an `Mcp-Session-Id`. The gateway stores nothing of it: the id itself holds version,
 *   capabilities and the label, sealed for the owner with the key that all gateways of the installation share. Its
 *   first part names the worker that began it. While that runs on this host it serves the session
 *   (`other-worker.ts`), because streams, running requests and connections to servers are there. Any other worker makes
 *   the session again from its id, without subscriptions, log level and events that were not read, and tells the caller to list
 *   again.
 */
import { z } from 'zod'
import { sealSame, unsealSame } from '../../lib/seal.ts'
import type { Json } from '../../mcp/connection.ts'
import { forwardedCapabilities, modernVersion, protocolVersions } from '../../mcp/protocol.ts'
import { McpSession } from '../../mcp/surface/session.ts'
import type { Gateway } from '../context.ts'
import type { Exchange } from '../exchange.ts'
import { governorOf } from './governor.ts'
import { sessionOwner, sessionToken } from './session-owner.ts'

type Caller = Pick<Exchange, 'token' | 'workload' | 'request'>

const sealedSchema = z.tuple([z.string(), z.enum(protocolVersions), z.record(z.string(), z.unknown())])
const longestId = 4096

const contextOf = (owner: string, { worker }: Pick<Gateway, 'worker'>): string =>
  ['mcp-session', worker.status.organizationId, owner].join('\n')

interface Described {
  readonly id: string
  readonly label: string | null
  readonly protocolVersion: string
  readonly capabilities: Json
  readonly revived?: boolean
}

function make(caller: Caller, gateway: Gateway, described: Described): McpSession {
  const session = new McpSession({
    ...described,
    token: sessionToken(caller),
    owner: sessionOwner(caller),
    servers: gateway.mcp.servers,
    governor: governorOf(gateway),
    evicted() {
      gateway.mcp.sessions.evicted += 1
    },
  })
  gateway.mcp.sessions.add(session, gateway.clock.monotonic())
  return session
}

/** Begins a session (Lifecycle, version negotiation: the requested version if it is supported, otherwise the newest). */
export function beginSession(caller: Caller, gateway: Gateway, asked: string, declared: Json): McpSession {
  const label = gateway.newId()
  const protocolVersion = protocolVersions.find((spoken) => spoken === asked) ?? protocolVersions[0]
  const capabilities = forwardedCapabilities(declared)
  const plain = JSON.stringify([label, protocolVersion, capabilities])
  const context = contextOf(sessionOwner(caller), gateway)
  const id = `${gateway.mcp.siblings.sessionPrefix}${sealSame(gateway.worker.status.storedIdKey, plain, context)}`
  return make(caller, gateway, { id, label, protocolVersion, capabilities })
}

/** The session of this id; null when it was not made for this owner, or has ended. */
export function findSession(caller: Caller, gateway: Gateway, id: string): McpSession | null {
  const { sessions } = gateway.mcp
  const owner = sessionOwner(caller)
  const known = sessions.find(id, owner, gateway.clock.monotonic())
  if (known !== null) {
    known.token = sessionToken(caller)
    return known
  }
  if (id.length > longestId) return null
  const sealed = id.slice(id.lastIndexOf('.') + 1)
  const plain = unsealSame(gateway.worker.status.storedIdKey, sealed, contextOf(owner, gateway))
  const described = plain === null ? null : sealedSchema.safeParse(JSON.parse(plain))
  if (described === null || !described.success || sessions.hasEnded(id)) return null
  const [label, protocolVersion, capabilities] = described.data
  const session = make(caller, gateway, { id, label, protocolVersion, capabilities, revived: true })
  // It may have missed a change.
  session.recordsChanged()
  return session
}

/** What this process keeps for a caller of 2026-07-28. */
export function modernSession(caller: Caller, gateway: Gateway, declared: Json): McpSession {
  const owner = sessionOwner(caller)
  const capabilities = forwardedCapabilities(declared)
  // No id that a caller sends has a line break.
  const id = `${owner}\n${JSON.stringify(capabilities)}`
  const known = gateway.mcp.sessions.find(id, owner, gateway.clock.monotonic())
  if (known === null) return make(caller, gateway, { id, label: null, protocolVersion: modernVersion, capabilities })
  known.token = sessionToken(caller)
  return known
}
