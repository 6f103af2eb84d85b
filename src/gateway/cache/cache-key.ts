/**
 * The key of an answer: a digest of all that the answer depends on. Two requests with equal keys would get the same
 * answer from a provider that answers alike each time.
 *
 * - Who shares answers: the organization, a team, a user or a token.
 * - Every policy that applies, with its version: a changed policy begins anew.
 * - The target: the provider, its address and the operator's headers, and its name of the model.
 * - The request in the caller's language and the provider's: stream or whole, headers that reach the provider, and the
 *   body as it is sent, after request policies. The order of outermost members does not matter; that of inner ones may
 *   change what a model reads, so those bytes count as they are.
 * - When the model's answers were last cleared, and the version of the gateway, which reads them.
 */
import { jsonMembers } from '../../lib/json/json-members.ts'
import type { PolicyChain } from '../../policies/chain.ts'
import type { CacheRule } from '../../policies/kinds/kind.ts'
import type { GovernedToken } from '../../tokens/governed-token.ts'
import { version } from '../../version.ts'
import type { Gateway } from '../context.ts'
import { type Exchange, type ResolvedModel, required } from '../exchange.ts'
import { headersToProvider } from '../request/headers.ts'
import { languageOf } from '../request/translate.ts'
import { clearedAt } from './cache-file.ts'

/** Outermost members that say who asks, or how a provider caches prompts; no answer depends on them. */
const leftOut: ReadonlySet<string> = new Set([
  'user',
  'metadata',
  'safety_identifier',
  'prompt_cache_key',
  'prompt_cache_retention',
])
/** Headers of which the same is true. */
const headersLeftOut: ReadonlySet<string> = new Set(['accept', 'user-agent', 'idempotency-key'])
/** Deeper than any body that passed admission, in whatever language it is sent. */
const mostDepth = 1024

/** `body`: as it is sent by this path. */
export function cacheKey(exchange: Exchange, gateway: Gateway, path: ResolvedModel, body: Uint8Array): string {
  const { token, chain, dialect, facts, request, cache } = exchange
  const { worker } = gateway
  const { provider, upstreamModel } = path
  const language = languageOf(exchange, path)
  const headers = Object.entries(headersToProvider(request.headers, dialect.family, null, language !== null))
  const about = [
    version,
    worker.status.organizationId,
    sharersOf(required(cache).rule, required(token)),
    versionsOf(required(chain)),
    clearedAt(worker.view.cacheClears, path.id),
    [provider.id, provider.kind, provider.baseUrl, provider.headers, upstreamModel],
    [dialect.family, language, required(facts).stream],
    headers.filter(([name]) => !headersLeftOut.has(name)).toSorted(byName),
  ]
  const hash = new Bun.CryptoHasher('sha256').update(JSON.stringify(about))
  for (const [name, value] of membersOf(new TextDecoder().decode(body))) {
    hash.update(`\n${JSON.stringify(name)}:${value}`)
  }
  return hash.digest('base64url')
}

type Named = readonly [name: string, value: string]

const byName = ([one]: Named, [other]: Named): number => (one < other ? -1 : one > other ? 1 : 0)

/** The members that an answer depends on, with their JSON text, by name. */
function membersOf(text: string): Named[] {
  const { names, spans } = jsonMembers(text, mostDepth)
  const found: Named[] = []
  for (const [index, name] of names.entries()) {
    const span = spans[index]
    if (span !== undefined && !leftOut.has(name)) found.push([name, text.slice(...span).trim()])
  }
  return found.toSorted(byName)
}

function sharersOf({ scope }: CacheRule, { id, teamId, eventTeamId, userId }: GovernedToken): string {
  if (scope === 'organization') return 'organization'
  const team = teamId ?? eventTeamId
  if (scope === 'team' && team !== null) return `team:${team}`
  return scope === 'team' && userId !== null ? `user:${userId}` : `token:${id}`
}

const versions = new WeakMap<PolicyChain, string>()

function versionsOf(chain: PolicyChain): string {
  let text = versions.get(chain)
  if (text === undefined) {
    const stages = (['pre_request', 'post_request', 'pre_response'] as const).map((stage) => chain.at(stage))
    text = [...stages, chain.caches].map((all) => all.map(({ id, version }) => `${id}@${version}`).join()).join(';')
    versions.set(chain, text)
  }
  return text
}
