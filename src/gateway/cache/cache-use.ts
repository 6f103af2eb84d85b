/**
 * Decides whether a request uses the answer cache (README.md): a policy of the kind `answer-cache` applies, its
 * condition holds, and the answer depends on nothing but the request.
 */
import type { Family } from '../../languages/families.ts'
import { isGiven } from '../../languages/reading/json-value.ts'
import type { PolicyChain } from '../../policies/chain.ts'
import type { CacheRule } from '../../policies/kinds/kind.ts'
import type { Gateway } from '../context.ts'
import { type Exchange, type ResolvedModel, required } from '../exchange.ts'
import { requestContext } from '../policy/subject.ts'
import type { CacheUse } from './cache-state.ts'

/** Families whose requests and answers are JSON or event streams. */
const cached: ReadonlySet<Family> = new Set<Family>([
  'chat',
  'completions',
  'responses',
  'messages',
  'gemini',
  'embeddings',
  'moderations',
  'rerank',
])

/** Null if the request does not use the cache. Call it only where the chain has a policy for it. */
export function cacheUseOf(exchange: Exchange, gateway: Gateway): CacheUse | null {
  const { dialect, grant, model } = exchange
  // A reviewer's grant sends one request, once.
  if (!cached.has(dialect.family) || dialect.countsTokens || grant !== null || model === null) return null
  if (dependsOnState(exchange, model)) return null
  const rule = ruleFor(exchange, gateway, required(exchange.chain))
  if (rule === null) return null
  const asked = directivesOf(exchange.request.headers)
  const keeps = !asked.includes('no-store')
  return { rule, keeps, result: keeps && !asked.includes('no-cache') ? 'miss' : 'bypass' }
}

/** Whether the request reads or makes something that a provider stores. */
function dependsOnState({ dialect, stored, parsed }: Exchange, { kind }: ResolvedModel): boolean {
  if (stored !== null || dialect.endpoint !== undefined) return true
  if (dialect.family !== 'responses' || parsed === null) return false
  if (isGiven(parsed.previous_response_id) || isGiven(parsed.conversation) || parsed.background === true) return true
  return kind.storesResponses === true && parsed.store !== false
}

/** The rule of the first policy that applies. A policy whose condition fails does not. */
function ruleFor(exchange: Exchange, gateway: Gateway, { caches }: PolicyChain): CacheRule | null {
  for (const { condition, compiled } of caches) {
    if (compiled instanceof Error || compiled.form !== 'whole' || compiled.cache === undefined) continue
    try {
      if (condition === null || condition(requestContext(exchange, gateway))) return compiled.cache
    } catch (error) {
      gateway.log.warn({ request_id: exchange.requestId, error: String(error) }, 'A cache policy could not decide')
    }
  }
  return null
}

const none: readonly string[] = []

/** The cache directives of a request (RFC 9111 section 5.2.1). Those of a WebSocket's handshake are about itself. */
function directivesOf(headers: Headers): readonly string[] {
  const given = headers.get('cache-control')
  if (given === null || headers.has('upgrade')) return none
  return given
    .toLowerCase()
    .split(',')
    .map((directive) => directive.trim())
}
