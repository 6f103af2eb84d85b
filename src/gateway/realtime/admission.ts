/**
 * Decides whether a session may begin, by the stages of every request up to the policies. What is refused here is
 * refused as an HTTP request, with its event.
 */
import { Failure } from '../../failure.ts'
import type { ActivePolicy } from '../../policies/chain.ts'
import { checkLive, checkToken } from '../admission/authenticate.ts'
import { checkDepletion } from '../admission/check-depletion.ts'
import { resolveModel } from '../admission/model-routing.ts'
import { chainFor, selectChain } from '../admission/policy-chain.ts'
import { checkSessionId } from '../admission/session/match-session.ts'
import type { Gateway } from '../context.ts'
import { type Exchange, type ResolvedModel, required } from '../exchange.ts'
import { someReadText } from '../policy/evaluate-request.ts'
import { requestContext } from '../policy/subject.ts'

/** Admits the handshake of a session. `running`: how many there are with it. Throws what refuses it. */
export async function admitSession(exchange: Exchange, gateway: Gateway, running: number): Promise<ResolvedModel> {
  const { headers, url } = exchange.request
  const model = modelOf(new URL(url).searchParams)
  if (/realtime=v1/.test(headers.get('openai-beta') ?? '')) {
    const message = 'This speaks the generally available form of the realtime API: leave OpenAI-Beta: realtime=v1 out'
    throw new Failure('bad_request', { message })
  }
  const named = headers.get('x-session-id')
  if (named !== null) checkSessionId(named, 'x-session-id')
  exchange.parsed = { model }
  exchange.facts = exchange.dialect.read(exchange.parsed)
  if (running > gateway.settings.realtime_sessions) throw new Failure('realtime_sessions_exhausted')
  await checkDepletion(exchange, gateway)
  checkLive(exchange, gateway)
  resolveModel(exchange, gateway)
  selectChain(exchange, gateway)
  const path = required(exchange.model)
  if (path.kind.openSession === undefined) throw new Failure('model_family_unsupported', { param: 'model' })
  return path
}

function modelOf(query: URLSearchParams): string {
  const refused = (param: string, message: string) => new Failure('invalid_parameter', { param, message })
  if (query.has('call_id')) throw refused('call_id', 'A call goes past this gateway: open a session with ?model=')
  if (query.has('intent')) throw refused('intent', 'Sessions that only transcribe are not served here')
  const [model, ...others] = query.getAll('model')
  if (model === undefined || model === '' || others.length > 0) {
    throw refused('model', 'Name one model in the address: /v1/realtime?model=…')
  }
  return model
}

/** What the policies that hold now ask of a session. */
export interface Guards {
  /** Policies read events of the client before the provider gets them. */
  readonly onRequests: boolean
  /** One of them must read text, so sound needs its transcript. */
  readonly readText: boolean
  /** Policies inspect answers. */
  readonly onAnswers: boolean
}

/** Checks the token again, and reads the policies that hold for it now. Throws if the token is not valid any more. */
export function guardsNow(exchange: Exchange, gateway: Gateway): Guards {
  checkToken(exchange, gateway)
  // Conditions ask for the time and the token as they are now.
  exchange.policyContext = null
  const chain = chainFor(exchange, gateway, required(exchange.model))
  if (chain.size === 0) return unguarded
  const requests: readonly ActivePolicy[] = chain.at('pre_request')
  return {
    onRequests: requests.length > 0,
    readText: requests.length > 0 && someReadText(requests, requestContext(exchange, gateway)),
    onAnswers: chain.at('post_request').length + chain.at('pre_response').length > 0,
  }
}

const unguarded: Guards = { onRequests: false, readText: false, onAnswers: false }
