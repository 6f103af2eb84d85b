/**
 * What an MCP server asks of a caller, or says to it, under the caller's policies (contract section 6, `/mcp`): text that
 * leaves to the caller passes pre_response policies (and post_request, which see it as it came), the caller's answer
 * pre_request ones. Each request is an exchange of its own, with its own outcome. A notification is one only where a
 * policy found something in it: most say nothing worth a record.
 */
import { answering } from '../dialects/mcp.ts'
import { asFailure } from '../failure.ts'
import type { Json, McpServerRecord } from '../mcp/connection.ts'
import { McpError } from '../mcp/mcp-error.ts'
import type { McpSession, SessionGovernor } from '../mcp/surface/session.ts'
import { admitToken } from './admit-token.ts'
import { answered, verdictOf } from './answered.ts'
import { considerRequest } from './consider-request.ts'
import { considerAnswer, isAnswerConsidered } from './consider-response.ts'
import { beginExchange, cut, type Exchange, type Gateway } from './exchange.ts'
import { fitChain } from './fit-chain.ts'
import { showParameters, untilCut } from './mcp-call.ts'
import { logUnrecorded, settle, settleUnwatched } from './record.ts'

/** JSON-RPC 2.0 section 5.1: a code of the server's own. */
const refusedCode = -32_000

interface Passing {
  readonly server: McpServerRecord
  readonly method: string
  readonly params: Json
}

export const governorOf = (gateway: Gateway): SessionGovernor => ({
  async ask(session, asked, deliver) {
    const exchange = begin(gateway, session, asked)
    const leave = () => cut(exchange, 'mcp.given_up', asFailure(asked.signal.reason))
    asked.signal.addEventListener('abort', leave, { once: true })
    gateway.running.add(exchange)
    try {
      const params = await leaving(exchange, gateway, asked.params)
      const answer = await arriving(exchange, gateway, await untilCut(exchange, deliver(params)))
      await settle(exchange, gateway, answered(exchange, 200))
      return answer
    } catch (thrown) {
      throw await refused(exchange, gateway, thrown)
    } finally {
      asked.signal.removeEventListener('abort', leave)
      gateway.running.remove(exchange)
    }
  },

  async tell(session, told) {
    const exchange = begin(gateway, session, told)
    try {
      const params = await leaving(exchange, gateway, told.params)
      if (exchange.verdict !== 'allow') settleUnwatched(exchange, gateway, answered(exchange, 200))
      return params
    } catch (thrown) {
      await refused(exchange, gateway, thrown)
      return null
    }
  },
})

/** An exchange of what a server sends: its token is looked at again, because a session is long. */
function begin(gateway: Gateway, session: McpSession, { server, method, params }: Passing): Exchange {
  const request = new Request(`${gateway.lane.standing.gatewayUrl}/mcp`, { method: 'POST' })
  const mcp = { method, params, id: null, session, call: null, server, name: null, requestBytes: 0, resultBytes: null }
  const exchange = beginExchange(
    {
      request,
      connection: null,
      requestId: gateway.newId(),
      route: 'POST /mcp',
      family: 'mcp',
      dialect: answering('', method),
      mcp: { ...mcp, toolFailed: false },
    },
    gateway,
  )
  exchange.tokenHash = session.token.hash
  return exchange
}

async function leaving(exchange: Exchange, gateway: Gateway, params: Json): Promise<Json> {
  admitToken(exchange, gateway)
  showParameters(exchange, params)
  fitChain(exchange, gateway)
  if (isAnswerConsidered(exchange)) await considerAnswer(exchange, gateway, { status: 200, body: params })
  return params
}

async function arriving(exchange: Exchange, gateway: Gateway, answer: Json): Promise<Json> {
  if (exchange.mcp !== null) exchange.mcp.resultBytes = Buffer.byteLength(JSON.stringify(answer))
  admitToken(exchange, gateway)
  exchange.parsed = { method: exchange.mcp?.method, params: answer, tools: [] }
  exchange.policyContext = null
  await considerRequest(exchange, gateway)
  return answer
}

/** Records what went wrong, and says it as the server is told. */
async function refused(exchange: Exchange, gateway: Gateway, thrown: unknown): Promise<McpError> {
  if (thrown instanceof McpError) {
    // The caller cannot, or will not: that is an answer too.
    settleUnwatched(exchange, gateway, { verdict: 'allow', reason: 'mcp.declined', status: 200 })
    return thrown
  }
  const failure = exchange.cut?.failure ?? asFailure(thrown)
  const reason = exchange.cut?.reason ?? failure.verdictan?.reason_code ?? failure.code
  try {
    await settle(exchange, gateway, { verdict: verdictOf(failure), reason, status: null })
  } catch (unrecorded) {
    logUnrecorded(exchange, gateway, unrecorded)
  }
  return new McpError(refusedCode, failure.message, { code: failure.code })
}
