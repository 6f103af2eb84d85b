/**
 * Applies the caller's policies to requests and notifications of an MCP server (gateway/README.md, MCP). Text to the
 * caller passes pre_response policies, and post_request ones, which see it as it came. The caller's answer passes
 * pre_request policies. Each request is an exchange with an outcome. A notification is recorded only when a policy
 * found something in it.
 */

import { asFailure } from '../../failure.ts'
import { answering } from '../../languages/mcp/dialect.ts'
import { isObject, textOf } from '../../languages/reading/json-value.ts'
import { rpcCodes } from '../../lib/json/json-rpc.ts'
import type { Json, McpServerRecord } from '../../mcp/connection.ts'
import { McpError } from '../../mcp/mcp-error.ts'
import type { McpSession, SessionGovernor } from '../../mcp/surface/session.ts'
import type { SessionStatus } from '../../mcp/surface/sessions.ts'
import { finishExchange, finishInBackground, logUnrecordedOutcome } from '../accounting/exchange-record.ts'
import { answeredOutcome, verdictOf } from '../accounting/outcome.ts'
import { checkToken } from '../admission/authenticate.ts'
import { admitToken } from '../admission/authorize.ts'
import { selectChain } from '../admission/policy-chain.ts'
import type { Gateway } from '../context.ts'
import { beginExchange, cutExchange, type Exchange, type Outcome } from '../exchange.ts'
import { evaluateRequest } from '../policy/evaluate-request.ts'
import { allowServer, orUntilCut, setPolicyParameters } from './call.ts'
import { workloadOf } from './session-owner.ts'
import { evaluateServerMessage, limitAnswerTexts } from './texts.ts'

interface Passing {
  readonly server: McpServerRecord
  readonly method: string
  readonly params: Json
}

export const governorOf = (gateway: Gateway): SessionGovernor => ({
  async ask(session, serverRequest, deliver) {
    const exchange = begin(gateway, session, serverRequest)
    const leave = () => cutExchange(exchange, 'mcp.given_up', asFailure(serverRequest.signal.reason))
    serverRequest.signal.addEventListener('abort', leave, { once: true })
    gateway.running.add(exchange)
    try {
      // The server's progress token is not forwarded; the session uses its own (`caller-requests.ts`).
      const { _meta: _, ...rest } = serverRequest.params
      const { progressToken, ...shown } = metaOf(serverRequest.params)
      const tokenLess = progressToken === undefined ? serverRequest.params : { ...rest, _meta: shown }
      const left = await leaving(exchange, gateway, tokenLess)
      const params = progressToken === undefined ? left : { ...left, _meta: { ...metaOf(left), progressToken } }
      const answer = await orUntilCut(exchange, answerOf(deliver(params)))
      await arriving(exchange, gateway, answer.body)
      await finishExchange(exchange, gateway, outcomeOf(exchange, answer))
      if (answer.code === null) return answer.body
      throw new McpError(answer.code, textOf(answer.body.message) ?? '', answer.body.data)
    } catch (thrown) {
      throw await refused(exchange, gateway, thrown)
    } finally {
      serverRequest.signal.removeEventListener('abort', leave)
      gateway.running.remove(exchange)
    }
  },

  mayTell: (session) => sessionStatus(session, gateway) === 'usable',

  async tell(session, notification) {
    const exchange = begin(gateway, session, notification)
    try {
      const { progressToken, ...rest } = notification.params
      // The caller chose this token and identifies its call by it.
      const isCallers = notification.method === 'notifications/progress'
      const left = await leaving(exchange, gateway, isCallers ? rest : notification.params)
      const params = isCallers ? { progressToken, ...left } : left
      if (exchange.verdict !== 'allow') finishInBackground(exchange, gateway, answeredOutcome(exchange, 200))
      return params
    } catch (thrown) {
      await refused(exchange, gateway, thrown)
      return null
    }
  },
})

const metaOf = ({ _meta: meta }: Json): Json => (isObject(meta) ? meta : {})

/**
 * Whether the session's token is still usable: it may have expired, been rotated or been revoked since it was last
 * used. The same is true of the JWT of its caller, which the next one of the same subject replaces.
 */
export function sessionStatus({ token }: McpSession, gateway: Gateway): SessionStatus {
  const workload = workloadOf(token)
  const checked: Parameters<typeof checkToken>[0] = { tokenHash: token.hash, token: null, family: 'mcp', workload }
  try {
    checkToken(checked, gateway)
    return 'usable'
  } catch (thrown) {
    // An outage is no revocation. The token is checked again on its next use.
    if (asFailure(thrown).status >= 500) return 'usable'
    return checked.token !== null && checked.token.revokedAt !== null ? 'ended' : 'replaceable'
  }
}

const nothingSent = {
  ...{ sent: false, requestBytes: 0, resultBytes: null, toolFailed: false },
  ...{ errorCode: null, calling: null, changes: null },
}

/** An exchange for a server message. The token is checked again, because a session is long. */
function begin(gateway: Gateway, session: McpSession, { server, method, params }: Passing): Exchange {
  const request = new Request(`${gateway.worker.status.gatewayUrl}/mcp`, { method: 'POST' })
  const mcp = { method, params, id: null, session, call: null, server, name: null, state: null }
  const exchange = beginExchange(
    {
      request,
      connection: null,
      requestId: gateway.newId(),
      route: 'POST /mcp',
      family: 'mcp',
      dialect: answering({ id: '', method, sent: false }),
      mcp: { ...mcp, ...nothingSent },
    },
    gateway,
  )
  exchange.tokenHash = session.token.hash
  exchange.workload = workloadOf(session.token)
  return exchange
}

/** The caller's answer: a result, or the message, data and code of an error. */
interface CallersAnswer {
  readonly body: Json
  readonly code: number | null
}

async function answerOf(answer: Promise<Json>): Promise<CallersAnswer> {
  try {
    return { body: await answer, code: null }
  } catch (thrown) {
    if (!(thrown instanceof McpError)) throw thrown
    const { code, message, data } = thrown
    return { body: { message, ...(data === undefined ? {} : { data }) }, code }
  }
}

/** An error answer of the caller is an answer too. */
function outcomeOf(exchange: Exchange, { code }: CallersAnswer): Outcome {
  const outcome = answeredOutcome(exchange, 200)
  return code !== null && outcome.verdict === 'allow' ? { ...outcome, reason: 'mcp.declined' } : outcome
}

async function leaving(exchange: Exchange, gateway: Gateway, params: Json): Promise<Json> {
  admitToken(exchange, gateway)
  // The bindings of the token may have changed since the connection was opened.
  allowServer(exchange, gateway)
  setPolicyParameters(exchange, params)
  selectChain(exchange, gateway)
  await evaluateServerMessage(exchange, gateway, params)
  return params
}

async function arriving(exchange: Exchange, gateway: Gateway, answer: Json): Promise<void> {
  if (exchange.mcp !== null) exchange.mcp.resultBytes = Buffer.byteLength(JSON.stringify(answer))
  admitToken(exchange, gateway)
  exchange.parsed = { method: exchange.mcp?.method, params: answer, tools: [] }
  exchange.policyContext = null
  limitAnswerTexts(exchange, gateway)
  await evaluateRequest(exchange, gateway)
}

/** Records the failure and returns the error for the server. */
async function refused(exchange: Exchange, gateway: Gateway, thrown: unknown): Promise<McpError> {
  if (thrown instanceof McpError) return thrown
  const failure = exchange.cut?.failure ?? asFailure(thrown)
  const reason = exchange.cut?.reason ?? failure.verdictan?.reason_code ?? failure.code
  try {
    await finishExchange(exchange, gateway, { verdict: verdictOf(failure), reason, status: null, limit: failure.limit })
  } catch (unrecorded) {
    logUnrecordedOutcome(exchange, gateway, unrecorded)
  }
  return new McpError(rpcCodes.refused, failure.message, { code: failure.code })
}
