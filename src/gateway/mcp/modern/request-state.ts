/**
 * `requestState` of a call in several rounds (2026-07-28, Multi Round-Trip Requests): what the caller brings back with
 * its answers. It is sealed for the caller's owner, the method and the name that is called, with the key that all
 * gateways of the installation share, so no caller can make, change or exchange one. Policies do not read it.
 *
 * It carries a reviewer's grant to the next round: `<grant>.2` is the leave to send the second round of the call that
 * the grant let pass, once. It holds for the same call only, whatever its caller answers.
 */
import { Failure } from '../../../failure.ts'
import { sealSame, unsealSame } from '../../../lib/seal.ts'
import type { Json } from '../../../mcp/connection.ts'
import { requestedName } from '../../../mcp/protocol.ts'
import type { Gateway } from '../../context.ts'
import { type Exchange, required } from '../../exchange.ts'
import type { McpRequest, RequestState } from '../mcp-request.ts'
import { sessionOwner } from '../session-owner.ts'

const lifetimeMilliseconds = 60 * 60_000

type Caller = Pick<Exchange, 'token' | 'workload'>
type Asked = Pick<McpRequest, 'method' | 'params'>

const contextOf = (caller: Caller, { method, params }: Asked, { worker }: Gateway) =>
  JSON.stringify([
    'mcp-request-state',
    worker.status.organizationId,
    sessionOwner(caller),
    method,
    requestedName(method, params),
  ])

/** The call without what differs between its rounds. */
function callHash({ method, params }: Asked, { worker }: Gateway): string {
  const { _meta, requestState, inputResponses, ...call } = params
  return worker.status.promptHash(Buffer.from(JSON.stringify([method, call])))
}

/** Seals the state for the next round; null when there is nothing to bring back. */
export function sealState(
  exchange: Exchange,
  gateway: Gateway,
  { holder, text }: Pick<RequestState, 'holder' | 'text'>,
): string | null {
  const mcp = required(exchange.mcp)
  const grant = exchange.grant === null ? (mcp.state?.grant ?? null) : nextRound(exchange.grant.id)
  if (text === null && grant === null) return null
  const granted: Json = grant === null ? {} : { grant, call: callHash(mcp, gateway) }
  const plain = JSON.stringify([gateway.clock.now() + lifetimeMilliseconds, holder, text, granted])
  return sealSame(gateway.worker.status.storedIdKey, plain, contextOf(exchange, mcp, gateway))
}

function nextRound(grant: string): string {
  const [id, round = '1'] = grant.split('.')
  return `${id}.${Number(round) + 1}`
}

/** Null when the request has none. Throws `invalid_parameter` for one of another caller, request or time. */
export function openState(caller: Caller, gateway: Gateway, asked: Asked): RequestState | null {
  const { requestState: sealed } = asked.params
  if (sealed === undefined) return null
  const plain =
    typeof sealed === 'string'
      ? unsealSame(gateway.worker.status.storedIdKey, sealed, contextOf(caller, asked, gateway))
      : null
  if (plain === null) throw foreignState()
  const [expiresAt, holder, text, { grant = null, call }] = JSON.parse(plain)
  if (expiresAt <= gateway.clock.now()) throw foreignState()
  return { holder, text, grant: grant !== null && call === callHash(asked, gateway) ? grant : null }
}

const foreignState = (): Failure =>
  new Failure('invalid_parameter', {
    param: 'requestState',
    message: 'requestState is not of this request, or is older than an hour: send the request without it',
  })
