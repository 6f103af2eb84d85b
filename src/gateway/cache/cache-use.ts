/**
 * Decides whether a request uses the answer cache (README.md): a policy of the kind `answer-cache` applies, its
 * condition holds, and the answer depends on nothing but the request.
 */
import type { Family } from '../../languages/families.ts'
import type { PolicyChain } from '../../policies/chain.ts'
import type { CacheRule } from '../../policies/kinds/kind.ts'
import type { Gateway } from '../context.ts'
import { type Exchange, type ResolvedModel, required } from '../exchange.ts'
import { requestContext } from '../policy/subject.ts'
import { hasProviderEffects } from '../request/provider-effects.ts'
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
  const { dialect, model } = exchange
  if (!cached.has(dialect.family) || model === null) return null
  if (hasProviderEffects(exchange) || isStored(exchange, model)) return null
  const rule = ruleFor(exchange, gateway, required(exchange.chain))
  if (rule === null) return null
  const asked = directivesOf(exchange.request.headers)
  const keeps = !asked.includes('no-store')
  return { rule, keeps, result: keeps && !asked.includes('no-cache') ? 'miss' : 'bypass' }
}

/** Whether the provider stores the answer, as it does with responses unless they say otherwise. */
const isStored = ({ dialect, parsed }: Exchange, { kind }: ResolvedModel): boolean =>
  dialect.family === 'responses' && kind.storesResponses === true ? parsed?.store !== false : parsed?.store === true

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
