/**
 * The page to read first: the life of one governed request, in order (gateway/README.md). Each stage takes the exchange
 * and makes it richer, or throws a Failure; `error-response.ts` is the one place that turns a Failure into the caller's dialect.
 * A stage that waits for nothing returns nothing, so that the common path is not cut into turns of the event loop.
 */

import { openRecord } from './accounting/open-record.ts'
import { authenticate, identify } from './admission/authenticate.ts'
import { admitToken } from './admission/authorize.ts'
import { askWhetherDepleted } from './admission/check-depletion.ts'
import { resolveModel } from './admission/model-routing.ts'
import { fitChain } from './admission/policy-chain.ts'
import { limitRate } from './admission/rate-limit.ts'
import { reserveUsage } from './admission/reserve.ts'
import { matchSession } from './admission/session.ts'
import type { Gateway } from './context.ts'
import type { Exchange } from './exchange.ts'
import { allowServer, callServer, keepCalled, readCall } from './mcp/call.ts'
import { answerDiscovery, readDiscovery } from './mcp/discovery.ts'
import { boundTexts } from './mcp/texts.ts'
import { answerModels } from './model-discovery.ts'
import { evaluateRequest } from './policy/evaluate-request.ts'
import { translateMembers } from './request/gateway-fields.ts'
import { admitFrame } from './request/read-body.ts'
import { readRequest } from './request/read-request.ts'
import { translateRequest } from './request/translate.ts'
import { dispatch } from './upstream/fallback.ts'
import { readFrame } from './websocket/frame.ts'

export type Stage = (exchange: Exchange, gateway: Gateway) => Promise<void> | void

/** A request to a model. What stands before `openRecord` can refuse it at no cost; what follows has one outcome. */
export const inferenceStages: readonly Stage[] = [
  authenticate,
  readRequest,
  matchSession,
  admitToken,
  resolveModel,
  fitChain,
  translateMembers,
  limitRate,
  evaluateRequest,
  translateRequest,
  reserveUsage,
  openRecord,
  dispatch,
]

/** A frame of a WebSocket is a request like any other, once it has been read as one. */
export const frameStages: readonly Stage[] = [authenticate, admitFrame, readFrame, ...inferenceStages.slice(1)]

/** Model discovery calls no provider; who may see what is decided by the same stages. */
export const discoveryStages: readonly Stage[] = [authenticate, admitToken, askWhetherDepleted, answerModels]

/**
 * A request to an MCP server: the same stages, without those that are about models. The surface has authenticated who
 * sent it before its body came.
 */
export const mcpCallStages: readonly Stage[] = [
  identify,
  admitToken,
  readCall,
  // No chain is refused here, and the record of a refusal is written by its policies.
  fitChain,
  allowServer,
  limitRate,
  boundTexts,
  evaluateRequest,
  keepCalled,
  reserveUsage,
  openRecord,
  callServer,
]

/** What the MCP surface answers without any server doing anything. */
export const mcpDiscoveryStages: readonly Stage[] = [
  identify,
  admitToken,
  askWhetherDepleted,
  readDiscovery,
  answerDiscovery,
]
