/**
 * Serves the ungoverned endpoints of the process itself: liveness, readiness, metrics, the API description, and what
 * clients read before they connect.
 */

import { asFailure } from '../failure.ts'
import type { Readiness } from '../fleet/protocol/worker.ts'
import { chat } from '../languages/chat/dialect.ts'
import { forAnyOrigin, preflightAnswer } from '../lib/http/any-origin.ts'
import {
  cardCatalog,
  catalogPath,
  catalogType,
  serverCard,
  serverCardPath,
  serverCardType,
} from '../mcp/server-card.ts'
import { type ProtectedResource, protectedResourcePath } from '../oauth/metadata/protected-resource.ts'
import { version } from '../version.ts'
import { failureResponse } from './error-response.ts'

export interface ProcessEndpoint {
  ready(): Readiness
  metrics(): Promise<string>
  /** The API description; rejects with a Failure when it is not available. */
  openapi(): Promise<unknown>
  /**
   * The OAuth protected resource metadata of this gateway by path (RFC 9728); throws `not_ready` before its bootstrap.
   */
  resources(): Readonly<Record<string, ProtectedResource>>
  /** The address of this gateway for callers; throws `not_ready` before its bootstrap. */
  gatewayUrl(): string
}

const mcpResourcePath = `${protectedResourcePath}/mcp`

/** A page reads where to connect, and where to get its token; all of it is public. */
export const pageReadablePaths: readonly string[] = [
  ...[protectedResourcePath, mcpResourcePath, serverCardPath, catalogPath],
]

/** A document that clients may keep for an hour (discovery of server cards, Caching). */
const publicDocument = (document: object, type: string): Response =>
  new Response(JSON.stringify(document), { headers: { 'content-type': type, 'cache-control': 'public, max-age=3600' } })

const answers: Readonly<Record<string, (itself: ProcessEndpoint) => Promise<Response> | Response>> = {
  '/healthz': () => Response.json({ status: 'ok', version }),
  '/readyz': ({ ready }) => {
    const state = ready()
    return Response.json(state, { status: state.ok ? 200 : 503 })
  },
  '/metrics': async ({ metrics }) =>
    new Response(await metrics(), { headers: { 'content-type': 'text/plain; version=0.0.4' } }),
  [protectedResourcePath]: ({ resources }) => Response.json(resources()[protectedResourcePath]),
  [mcpResourcePath]: ({ resources }) => Response.json(resources()[mcpResourcePath]),
  [serverCardPath]: ({ gatewayUrl }) => publicDocument(serverCard(gatewayUrl()), serverCardType),
  [catalogPath]: ({ gatewayUrl }) => publicDocument(cardCatalog(gatewayUrl()), catalogType),
  '/v1/openapi.json': async ({ openapi }) => Response.json(await openapi()),
}

export const processPaths: readonly string[] = Object.keys(answers)

/** Answers a browser that asks whether its page may read one of `pageReadablePaths`. */
export function preflightAboutItself(requestId: string): Response {
  const answer = preflightAnswer('GET')
  answer.headers.set('x-request-id', requestId)
  return answer
}

/** Answers one of `processPaths`. */
export async function answerProcessEndpoint(
  itself: ProcessEndpoint,
  path: string,
  requestId: string,
): Promise<Response> {
  const answer = await answerOf(itself, path, requestId)
  return pageReadablePaths.includes(path) ? forAnyOrigin(answer) : answer
}

async function answerOf(itself: ProcessEndpoint, path: string, requestId: string): Promise<Response> {
  try {
    const answer = await answers[path]?.(itself)
    if (answer === undefined) throw new RangeError(`There is nothing to say at ${path}`)
    answer.headers.set('x-request-id', requestId)
    return answer
  } catch (thrown) {
    return failureResponse(chat, asFailure(thrown), requestId, null)
  }
}
