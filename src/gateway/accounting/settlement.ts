/**
 * Computes what an exchange cost, books it on its limits, and gives back the rest of the reservation, in `bookLimits`
 * (usage/pricing/README.md).
 *
 * Reported usage counts (`usage.ts`), including that of earlier attempts. Without a report, input and produced output
 * are estimated from the text: for whole answers, for client disconnects, and for broken streams of which something was
 * passed on. A failed call costs only what it reported. An estimate never exceeds the reservation. A report is booked
 * in full, up to the most that an account can hold, and the outcome states the excess. A response in the background
 * whose end nobody saw is charged its whole reservation, because the provider goes on with it (`stored/background.ts`).
 */

import type { CostAttribution, Event } from '../../events/event.ts'
import { isFree, type RequestFacts, type Usage } from '../../languages/dialect.ts'
import { fromNano } from '../../lib/money.ts'
import type { CacheRule } from '../../policies/kinds/kind.ts'
import type { Price } from '../../providers/prices/price.ts'
import type { ModelTerms } from '../../providers/prices/price-book.ts'
import { multipleOf } from '../../providers/prices/service-tier.ts'
import { countsMoney } from '../../usage/account-name.ts'
import { type ExcessDetails, excessDetailsOf } from '../../usage/excess.ts'
import { maxAmount, plainName } from '../../usage/lease/lease.ts'
import { costOf } from '../../usage/pricing/cost.ts'
import type { RecordedUse } from '../../usage/rate/rate.ts'
import type { ReservedAmount } from '../../usage/usage-limits.ts'
import { chargedByBatch } from '../batches/batch-hold.ts'
import type { Gateway } from '../context.ts'
import type { Attempt, Exchange, PricedPath, ReasonCode, ResolvedModel } from '../exchange.ts'
import type { McpRequest } from '../mcp/mcp-request.ts'
import { callPrice } from '../mcp/tools/call-price.ts'
import { isUnseen } from '../stored/stored-state.ts'
import { maskSecrets } from './redaction.ts'
import { completedUsage, estimateUsage, limitPartsToInput, noUsage, speechCharacters } from './usage.ts'

/** What an exchange used and its cost. */
export interface Spent {
  usage: Usage
  estimated: boolean
  /** Nano-dollars; null when the model has no price. */
  cost: number | null
  source: string | null
  /** Nano-dollars by which an answer from the cache was cheaper; absent for all others. */
  saved?: number
}

type Terms = Pick<Gateway, 'prices' | 'clock'>

/** Reasons of outcomes that are charged by estimate when the provider reports no usage. */
const chargedByEstimate: ReadonlySet<ReasonCode> = new Set([
  'ok',
  'client.left',
  'gateway.drained',
  'gateway.interrupted',
  'token.revoked',
])

/** Returns null when nothing was used. */
export function spentOf(exchange: Exchange, gateway: Terms, reason: ReasonCode): Spent | null {
  const { facts, model, dialect, mcp } = exchange
  if (mcp !== null) return mcp.sent ? callSpend(mcp) : null
  const { usage } = exchange.call
  if (facts === null || model === null || !exchange.opened || isFree(dialect)) return null
  if (usage === null && isUnseen(exchange)) return reservedSpend(exchange, gateway)
  if (exchange.cache?.result === 'hit') return cachedSpend(exchange, gateway, model, exchange.cache.rule)
  const earlier = earlierCost(exchange)
  const estimable = exchange.attempts.length > 0 && (chargedByEstimate.has(reason) || exchange.relayedCharacters > 0)
  if (usage === null && !estimable && earlier === 0) return null
  const terms = termsOf(exchange, gateway, model)
  const source = terms.price?.source ?? null
  const last = lastCallUsage(exchange, estimable)
  const cost = costAt(exchange, terms, last.usage)
  if (cost === null) return { ...last, cost: null, source }
  const whole = cost + earlier
  const paid = last.estimated ? chargedCost(exchange, terms, whole, earlier) : whole
  return { usage: last.usage, estimated: last.estimated, cost: Math.min(paid, maxAmount), source }
}

/** What a call to an MCP server costs that was sent, whatever the server answers; null when it has no price. */
export function callSpend(mcp: McpRequest): Spent | null {
  const cost = callPrice(mcp)
  return cost > 0 ? { usage: noUsage, estimated: false, cost, source: 'catalog' } : null
}

/** What an answer from the cache costs: a part of what it would have cost, and never more than the reservation. */
function cachedSpend(exchange: Exchange, gateway: Terms, model: ResolvedModel, { pricePercent }: CacheRule): Spent {
  const terms = termsOf(exchange, gateway, model)
  const { usage, estimated } = lastCallUsage(exchange, true)
  const whole = costAt(exchange, terms, usage)
  const source = terms.price?.source ?? null
  if (whole === null) return { usage: noUsage, estimated: false, cost: null, source }
  const cost = Math.min(Math.floor((whole * pricePercent) / 100), reservedMoney(exchange), maxAmount)
  return { usage: noUsage, estimated: cost > 0 && estimated, cost, source, saved: whole - cost }
}

/** Limits an estimate to the reservation; reported usage is not limited. */
function chargedCost(exchange: Exchange, terms: ModelTerms, whole: number, earlier: number): number {
  const { usage } = exchange.call
  const reported = usage === null ? 0 : (costAt(exchange, terms, limitPartsToInput(usage)) ?? 0)
  return Math.max(reported + earlier, Math.min(whole, reservedMoney(exchange)))
}

/** A failed request of several calls is charged what was reported, without an estimate for the rest. */
function lastCallUsage(exchange: Exchange, estimable: boolean): { usage: Usage; estimated: boolean } {
  const { usage, unreportedInputTokens } = exchange.call
  if (usage === null) return { usage: estimable ? estimateUsage(exchange) : noUsage, estimated: true }
  return unreportedInputTokens === null || estimable ? completedUsage(exchange, usage) : { usage, estimated: false }
}

/** The charge of an exchange that recovery ends: the whole reservation, or without one its input. */
export function reservedSpend(exchange: Exchange, gateway: Terms): Spent {
  const { model } = exchange
  const usage = estimateUsage(exchange)
  const terms: ModelTerms | null = model === null ? null : termsOf(exchange, gateway, model)
  const held = reservedMoney(exchange)
  const cost = Number.isFinite(held) ? held : terms === null ? null : costAt(exchange, terms, usage)
  return { usage, estimated: true, cost, source: terms?.price?.source ?? null }
}

/** The parts of a record's end that show what was booked. */
interface BookedEnd {
  readonly details: NonNullable<Event['details']>
  readonly members: Pick<Event, 'settlements'>
}

/**
 * Books the use on each limit in the tick in which the outcome is written, and gives back the rest. Without an open
 * record it gives back everything. A request counts as one request whatever the provider answered.
 */
export function bookLimits(exchange: Exchange, end: BookedEnd, spent: Spent | null): void {
  const { reservation } = exchange
  if (reservation === null) return
  exchange.reservation = null
  if (!exchange.opened) {
    reservation.release()
    return
  }
  const { held } = reservation
  const batch = exchange.stored?.batch ?? null
  if (batch !== null) {
    end.members.settlements = [...reservation.book(chargedByBatch(batch, held))]
    return
  }
  const cost = spent?.cost ?? 0
  const used: ReservedAmount[] = []
  for (let index = 0; index < held.length; index++) {
    const set = held[index]
    if (set === undefined) break
    const amount = countsMoney(set.account) ? shareOfCost(held, index, cost) : set.amount
    used.push({ account: set.account, amount })
  }
  const exceeded = spent === null ? null : excessOfSpent(exchange, spent)
  if (exceeded !== null) end.details.bound_exceeded = exceeded
  end.members.settlements = [...reservation.book(used)]
}

/** By how much the last call exceeded its bound, when it exceeded it by more than the reserved excess. */
function excessOfSpent(exchange: Exchange, spent: Spent): ExcessDetails | null {
  const { model, priced, call } = exchange
  const path = model === null ? undefined : pricedOf(priced, model)
  // Of an estimate only what the provider reported can exceed a bound.
  const reported = call.usage === null ? null : limitPartsToInput(call.usage)
  const usage = spent.estimated ? reported : spent.usage
  if (usage === null || model === null || path === undefined || path.bound === null) return null
  const { listed, excess: known } = path.bound
  const excess = Math.min(costAt(exchange, path.terms, usage) ?? 0, maxAmount) - listed
  return excess > known ? excessDetailsOf(model.provider.id, model.upstreamModel, excess) : null
}

function pricedOf(priced: readonly PricedPath[], model: ResolvedModel): PricedPath | undefined {
  for (const path of priced) if (path.model === model) return path
  return undefined
}

/** The cost on one money limit. When the window of a budget ended meanwhile, the older reservation is used first. */
function shareOfCost(held: readonly ReservedAmount[], index: number, cost: number): number {
  const name = plainName(held[index]?.account ?? '')
  let unpaid = cost
  for (const [place, { account, amount }] of held.entries()) {
    if (plainName(account) !== name || place === index) continue
    if (place > index) return Math.min(unpaid, held[index]?.amount ?? 0)
    unpaid -= Math.min(unpaid, amount)
  }
  return unpaid
}

const noUses: readonly RecordedUse[] = []

/**
 * Corrects the tokens a minute by the actual use and returns the corrections for the journal. A refused request counts
 * nothing.
 */
export function bookRates(exchange: Exchange, spent: Spent | null): readonly RecordedUse[] {
  const { rates, opened } = exchange
  if (rates === null) return noUses
  exchange.rates = null
  if (opened) return rates.correct((spent?.usage.inputTokens ?? 0) + (spent?.usage.outputTokens ?? 0))
  rates.release()
  return noUses
}

export function costAttribution(exchange: Exchange, { usage, estimated, cost, source }: Spent): CostAttribution {
  const { model, facts, mcp } = exchange
  return {
    currency: 'USD',
    cost: cost === null ? null : fromNano(cost),
    estimated,
    input_tokens: usage.inputTokens,
    output_tokens: usage.outputTokens,
    cached_input_tokens: usage.cachedInputTokens,
    reasoning_tokens: usage.reasoningTokens,
    provider: model?.provider.name ?? mcp?.server?.name ?? '',
    model: maskSecrets(model?.id ?? facts?.model ?? ''),
    price_source: source,
    spend_owner: exchange.spendOwner,
  }
}

/** The price terms of the admission, or the present ones when the request was not admitted. */
function termsOf({ priced }: Exchange, { prices, clock }: Terms, model: ResolvedModel): ModelTerms {
  for (const path of priced) if (path.model === model) return path.terms
  return prices.terms(model, clock.now())
}

function costAt({ dialect, parsed, facts }: Exchange, { price }: ModelTerms, usage: Usage): number | null {
  if (price === null) return null
  const serviceTier = usage.serviceTier ?? higherPricedTier(price, facts)
  const used = serviceTier === undefined ? usage : { ...usage, serviceTier }
  return costOf(price, dialect.family, used, speechCharacters(parsed))
}

/** When the answer names no service tier, the requested tier counts unless it is cheaper. */
function higherPricedTier(price: Price, facts: RequestFacts | null): string | undefined {
  const name = facts?.serviceTier?.name
  return name === undefined || (multipleOf(price, name) ?? 2) <= 1 ? undefined : name
}

/**
 * Whether the reservation covers one more attempt: the reported cost of earlier attempts plus the bound of this one.
 * Call it before each attempt after the first.
 */
export function coversAttempt(exchange: Exchange): boolean {
  const { reservation, attempts } = exchange
  const spent = costOfAttempts(exchange, attempts)
  const money = reservation?.held.filter(({ account }) => countsMoney(account)) ?? []
  if (reservation === null || spent === 0 || money.length === 0) return true
  return reservation.extend(money.map(({ account }) => ({ account, amount: spent })))
}

/** The reported cost of all attempts before the last. */
const earlierCost = (exchange: Exchange): number =>
  exchange.attempts.length < 2 ? 0 : costOfAttempts(exchange, exchange.attempts.slice(0, -1))

function costOfAttempts(exchange: Exchange, attempts: readonly Attempt[]): number {
  let sum = 0
  for (const attempt of attempts) {
    const { usage } = attempt
    const path = usage ? exchange.priced.find(({ model }) => isOf(model, attempt)) : undefined
    if (usage && path !== undefined) sum += costAt(exchange, path.terms, usage) ?? 0
  }
  return sum
}

const isOf = (model: ResolvedModel, attempt: Attempt): boolean =>
  model.upstreamModel === attempt.model && model.provider.name === attempt.provider

/** The smallest reservation on a money limit; infinite without a money limit. */
function reservedMoney({ reservation }: Exchange): number {
  let least = Number.POSITIVE_INFINITY
  if (reservation === null) return least
  for (const { account, amount } of reservation.held) if (countsMoney(account)) least = Math.min(least, amount)
  return least
}
