/**
 * `requestState` of a request in several rounds (2026-07-28, Multi Round-Trip Requests): what the caller brings back
 * with its answers. It is sealed for the caller's owner, the method and the name that is called, with the key that all
 * gateways of the installation share, so no caller can make, change or exchange one. Policies do not read it.
 */
import { rpcCodes } from '../../../lib/json/json-rpc.ts'
import { sealSame, unsealSame } from '../../../lib/seal.ts'
import { McpError } from '../../../mcp/mcp-error.ts'
import { requestedName } from '../../../mcp/protocol.ts'
import type { Gateway } from '../../context.ts'
import { type Exchange, required } from '../../exchange.ts'
import type { McpRequest } from '../mcp-request.ts'
import { sessionOwner } from '../session-owner.ts'

const lifetimeMilliseconds = 60 * 60_000

export interface RequestState {
  /** The prefix of the worker that holds the call at a server with sessions; null for the state of a server without. */
  readonly holder: string | null
  readonly text: string
}

type Caller = Pick<Exchange, 'token' | 'workload'>

const contextOf = (caller: Caller, { method, params }: Pick<McpRequest, 'method' | 'params'>, { worker }: Gateway) =>
  JSON.stringify([
    'mcp-request-state',
    worker.status.organizationId,
    sessionOwner(caller),
    method,
    requestedName(method, params),
  ])

export function sealState(exchange: Exchange, gateway: Gateway, { holder, text }: RequestState): string {
  const plain = JSON.stringify([gateway.clock.now() + lifetimeMilliseconds, holder, text])
  return sealSame(gateway.worker.status.storedIdKey, plain, contextOf(exchange, required(exchange.mcp), gateway))
}

/** Null when the request has none. Throws an McpError for one of another caller, request or time. */
export function openState(
  caller: Caller,
  gateway: Gateway,
  mcp: Pick<McpRequest, 'method' | 'params'>,
): RequestState | null {
  const { requestState: sealed } = mcp.params
  if (sealed === undefined) return null
  const plain =
    typeof sealed === 'string'
      ? unsealSame(gateway.worker.status.storedIdKey, sealed, contextOf(caller, mcp, gateway))
      : null
  const [expiresAt, holder, text] = plain === null ? [] : JSON.parse(plain)
  if (typeof expiresAt === 'number' && expiresAt > gateway.clock.now()) return { holder, text }
  throw new McpError(rpcCodes.invalidParams, 'requestState is not of this request: send the request without it')
}
