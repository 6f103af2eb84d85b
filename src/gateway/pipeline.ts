/**
 * The page to read first: the stages of a governed request in order (gateway/README.md). Each stage takes the exchange
 * and enriches it, or throws a Failure, which `error-response.ts` writes in the caller's dialect. A stage that does not
 * wait returns nothing, so that the common path does not yield to the event loop.
 */

import type { JsonObject } from '../languages/reading/json-value.ts'
import { openRecord } from './accounting/open-record.ts'
import { authenticate, authenticateDraining } from './admission/authenticate.ts'
import { admitToken } from './admission/authorize.ts'
import { checkDepletion } from './admission/check-depletion.ts'
import { resolveModel } from './admission/model-routing.ts'
import { selectChain } from './admission/policy-chain.ts'
import { takeRates } from './admission/rate-limit.ts'
import { reserveUsage } from './admission/reserve.ts'
import { matchSession } from './admission/session/match-session.ts'
import { requireTokenCount } from './admission/token-count.ts'
import { answerManagedSettings } from './agent-protocol/managed-settings.ts'
import { loadPrices, openBatchCall } from './batches/batch-call.ts'
import { holdBatch } from './batches/hold-batch.ts'
import { listObjects } from './batches/list-objects.ts'
import type { BatchRoute } from './batches/routes.ts'
import { uploadFile } from './batches/upload/upload-file.ts'
import type { Gateway } from './context.ts'
import type { Exchange } from './exchange.ts'
import { allowServer, callServer, readCall, refuseChangedTarget } from './mcp/call.ts'
import { answerDiscovery, readDiscovery } from './mcp/discovery.ts'
import { openSubscription } from './mcp/modern/subscriptions.ts'
import { limitRequestTexts } from './mcp/texts.ts'
import { reserveCall, takeCallRates } from './mcp/tools/call-limits.ts'
import { answerModels } from './model-discovery.ts'
import { evaluateRequest } from './policy/evaluate-request.ts'
import { awaitTranscript, readSpeech, type Speech, writtenBySession } from './realtime/speech.ts'
import { addContext, callSession, keepSession, passEvent, type SessionFacts } from './realtime/stages.ts'
import type { Turn } from './realtime/turn.ts'
import { attributeSpend } from './request/attribute-spend.ts'
import { translateFields } from './request/gateway-fields.ts'
import { readRequest } from './request/read-request.ts'
import { translateRequest } from './request/translate.ts'
import { openReferences, requireStoring } from './stored/references.ts'
import type { StoredRoute } from './stored/routes.ts'
import { keepOwnMembers, openStoredCall, readStoredCall } from './stored/stored-call.ts'
import type { Signal } from './telemetry-intake/attribution.ts'
import { takeTelemetry } from './telemetry-intake/intake.ts'
import { dispatch } from './upstream/fallback.ts'
import type { Conversation } from './websocket/conversation.ts'
import { admitFrame, readFrame } from './websocket/frame.ts'
import { answerWarmUp } from './websocket/warm-up.ts'

export type Stage = (exchange: Exchange, gateway: Gateway) => Promise<void> | void

/** An inference request. A stage before `openRecord` refuses at no cost; after it there is exactly one outcome. */
export const inferenceStages: readonly Stage[] = [
  authenticate,
  readRequest,
  matchSession,
  admitToken,
  attributeSpend,
  openReferences,
  resolveModel,
  requireStoring,
  selectChain,
  translateFields,
  takeRates,
  evaluateRequest,
  translateRequest,
  reserveUsage,
  openRecord,
  dispatch,
]

/** Counting tokens takes nothing from rates, budgets or request limits; the text still passes the policies. */
export const tokenCountStages: readonly Stage[] = [
  authenticate,
  readRequest,
  matchSession,
  admitToken,
  attributeSpend,
  checkDepletion,
  resolveModel,
  requireTokenCount,
  selectChain,
  translateFields,
  evaluateRequest,
  translateRequest,
  openRecord,
  dispatch,
]

/** A frame that asks for no output: it calls no provider and takes nothing from rates, budgets or request limits. */
const warmUpStages: readonly Stage[] = [
  readRequest,
  matchSession,
  admitToken,
  checkDepletion,
  resolveModel,
  selectChain,
  translateFields,
  evaluateRequest,
  answerWarmUp,
]

/** A call for a response or a conversation that a provider stores generates nothing and costs nothing. */
export const storedStages = (route: StoredRoute): readonly Stage[] => [
  authenticate,
  readStoredCall(route),
  matchSession,
  admitToken,
  attributeSpend,
  checkDepletion,
  openStoredCall(route),
  selectChain,
  takeRates,
  evaluateRequest,
  keepOwnMembers,
  openRecord,
  dispatch,
]

/** A file whose lines are requests: each is checked before anything is sent. */
export const uploadStages: readonly Stage[] = [authenticate, admitToken, checkDepletion, uploadFile]

/** A call for a file or a batch. One that makes a batch holds the most that all of its lines can cost. */
export const batchStages = (route: BatchRoute): readonly Stage[] => [
  authenticate,
  readStoredCall(route),
  admitToken,
  attributeSpend,
  checkDepletion,
  ...(route.about === 'new batch' ? [loadPrices] : []),
  openBatchCall(route),
  takeRates,
  ...(route.about === 'new batch' ? [holdBatch] : []),
  openRecord,
  dispatch,
]

/** A list of files or batches: each is read at its provider, and nothing is generated. */
export const listStages = (kind: 'file' | 'batch'): readonly Stage[] => [
  authenticate,
  admitToken,
  checkDepletion,
  listObjects(kind),
]

/** A WebSocket frame runs like any other request once it was read. */
export function* frameStages(conversation: Conversation | null): Generator<Stage> {
  yield authenticate
  yield (exchange) => admitFrame(exchange, conversation)
  yield (exchange, gateway) => readFrame(exchange, gateway, conversation)
  yield* conversation?.isWarmUp === true ? warmUpStages : inferenceStages.slice(1)
}

/** A response of a realtime session: a request whose provider is the session. */
export const turnStages = (session: SessionFacts, turn: Turn): readonly Stage[] => [
  authenticate,
  readRequest,
  admitToken,
  attributeSpend,
  resolveModel,
  keepSession(session),
  selectChain,
  addContext(session),
  takeRates,
  evaluateRequest,
  reserveUsage,
  openRecord,
  callSession(turn),
  dispatch,
]

/** An event of a realtime session that generates nothing and costs nothing: policies read its text. */
export const sessionEventStages = (session: SessionFacts, pass: (body: JsonObject) => void): readonly Stage[] => [
  authenticate,
  readRequest,
  admitToken,
  checkDepletion,
  resolveModel,
  keepSession(session),
  selectChain,
  evaluateRequest,
  passEvent(pass),
]

/** The transcript of something that was said in a realtime session. */
export const speechStages = (session: SessionFacts, speech: Speech): readonly Stage[] => [
  authenticate,
  readSpeech(speech),
  admitToken,
  attributeSpend,
  resolveModel,
  writtenBySession(session),
  reserveUsage,
  openRecord,
  awaitTranscript(speech),
]

/** Model discovery calls no provider; the same stages decide who may see what. */
export const discoveryStages: readonly Stage[] = [authenticate, admitToken, checkDepletion, answerModels]

/** Telemetry takes nothing from limits, and is recorded where it is refused. */
export const telemetryStages = (signal: Signal): readonly Stage[] => [authenticate, admitToken, takeTelemetry(signal)]

/** Settings of a coding agent call no provider either. */
export const managedSettingsStages: readonly Stage[] = [authenticate, admitToken, answerManagedSettings]

/**
 * A request to an MCP server: the same stages without those for models. The MCP endpoint has authenticated the sender
 * before the body arrived.
 */
export const mcpCallStages: readonly Stage[] = [
  authenticateDraining,
  admitToken,
  attributeSpend,
  readCall,
  // This does not refuse an MCP chain. The policies write the record of a refusal.
  selectChain,
  allowServer,
  takeCallRates,
  limitRequestTexts,
  evaluateRequest,
  refuseChangedTarget,
  reserveCall,
  openRecord,
  callServer,
]

/** MCP requests that the gateway answers without calling a server. */
export const mcpDiscoveryStages: readonly Stage[] = [
  authenticateDraining,
  admitToken,
  checkDepletion,
  readDiscovery,
  answerDiscovery,
]

/** A stream of changes: servers are told which resources it is about, so its policies see them. */
export const mcpSubscriptionStages: readonly Stage[] = [
  authenticateDraining,
  admitToken,
  checkDepletion,
  readDiscovery,
  selectChain,
  takeRates,
  limitRequestTexts,
  evaluateRequest,
  openRecord,
  openSubscription,
]
