/**
 * The second target that a share of a model's requests is sent to (README.md). A request goes there only where its
 * caller might have sent it: the gateway has the provider, and the token, its access policies and the policies of the
 * chain allow it.
 */
import type { ShadowTarget } from '../../fleet/protocol/worker.ts'
import { providerKinds } from '../../providers/kinds/index.ts'
import { serves } from '../../providers/provider.ts'
import { accessPoliciesOf, forbiddenBy } from '../../usage/rate/rate-demands.ts'
import type { Gateway } from '../context.ts'
import { type Exchange, type ResolvedModel, required } from '../exchange.ts'
import { mayServe } from '../policy/evaluate-request.ts'
import { hasProviderEffects } from '../request/provider-effects.ts'

/** Null if this request is not sent to it. */
export function shadowTarget(exchange: Exchange, gateway: Gateway, shadow: ShadowTarget): ResolvedModel | null {
  if (!isChosen(exchange.id, shadow.share) || hasProviderEffects(exchange)) return null
  const target = resolve(exchange, gateway, shadow)
  return target !== null && isAllowed(exchange, gateway, target) ? target : null
}

/** The last digits of an exchange's id are random. */
const isChosen = (id: string, share: number): boolean => (Number.parseInt(id.slice(-8), 16) / 2 ** 32) * 100 < share

function resolve(
  { model, dialect }: Exchange,
  { worker }: Gateway,
  { providerId, upstreamModel }: ShadowTarget,
): ResolvedModel | null {
  const asked = required(model)
  const provider = worker.view.provider(providerId)
  const kind = provider === null ? undefined : providerKinds.get(provider.kind)
  if (asked.listed === null || provider === null || kind === undefined || !serves(kind, dialect.family)) return null
  const name = upstreamModel ?? asked.upstreamModel
  // The catalog's own record of the target has its price and its families.
  const record = worker.view.models().find((one) => one.providerId === providerId && one.upstreamModel === name)
  const unlisted = { families: null, price: null, maxOutputTokens: null, fallbacks: [] }
  const listed = record ?? { ...asked.listed, ...unlisted, providerId, upstreamModel: name }
  return { id: asked.id, aliases: asked.aliases, upstreamModel: name, provider, kind, listed }
}

function isAllowed(exchange: Exchange, gateway: Gateway, target: ResolvedModel): boolean {
  const token = required(exchange.token)
  if (token.provider !== null && token.provider !== target.provider.name) return false
  const policies = accessPoliciesOf(token, gateway.worker.view.limits)
  return policies.every((policy) => forbiddenBy(policy, target) === null) && mayServe(exchange, gateway, target)
}
