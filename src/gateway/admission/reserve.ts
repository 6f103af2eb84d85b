/**
 * Reserves the maximum cost of a request on every limit it uses, all or none (usage/README.md; usage/lease/README.md).
 * Nothing is awaited when the lease balances of the worker suffice. What the request does not use is given back by
 * `bookLimits` in `accounting/settlement.ts`, when the outcome is written.
 *
 * 1. The price of each path is looked up once, so that the outcome is booked at the prices of the admission.
 * 2. A token without money limits needs no bound. Otherwise the most expensive path is bounded. A fallback without a
 *    price or a bound is left out; a requested model without one is refused. The bound is computed from the body as it
 *    will be sent, because a policy may have added to it.
 * 3. A grant below the bound lowers the output limit to what the grant can pay, starting from the model's maximum when
 *    the caller set none. The body, the event and a header state it. A limit below 1 is refused, because 0 means no
 *    limit to some providers. Fallbacks that cost more than the grant are left out.
 * 4. A request that the budget cannot pay by its bytes, but might pay by its tokens, is counted once with the model's
 *    tokenizer (`count-input.ts`) and reserves again with the smaller bound. Nothing is reserved meanwhile.
 */
import { asFailure, Failure } from '../../failure.ts'
import { fromNano } from '../../lib/money.ts'
import { countsMoney } from '../../usage/account-name.ts'
import { type MoneyAccount, moneyAccountsFor, spendAccountsOf, usageFailure } from '../../usage/demands.ts'
import { maxRequestedAmount } from '../../usage/lease/lease.ts'
import { affordableOutput, boundedCost } from '../../usage/pricing/bound.ts'
import { outputMaximum } from '../../usage/pricing/output-maximum.ts'
import { type Demand, type Reservation, UsageRefused } from '../../usage/usage-limits.ts'
import type { Gateway } from '../context.ts'
import { type Exchange, type PricedPath, required } from '../exchange.ts'
import { limitTools } from '../request/limit-tools.ts'
import { translateRequest } from '../request/translate.ts'
import { checkLive } from './authenticate.ts'
import { type BoundedPath, boundPaths, limitMembers, minCost } from './bound-paths.ts'
import { countInput } from './count-input.ts'
import { refusalContext } from './refusal-context.ts'

export function reserveUsage(exchange: Exchange, gateway: Gateway): Promise<void> | void {
  for (const path of exchange.paths) if (!gateway.prices.knows(path)) return reserveLater(exchange, gateway)
  return reserve(exchange, gateway)
}

async function reserveLater(exchange: Exchange, gateway: Gateway): Promise<void> {
  await gateway.prices.load()
  checkLive(exchange, gateway)
  await reserve(exchange, gateway)
}

function reserve(exchange: Exchange, gateway: Gateway): Promise<void> | void {
  const { view } = gateway.worker
  const token = required(exchange.token)
  const now = gateway.clock.now()
  const priced: PricedPath[] = []
  for (const model of exchange.paths) priced.push({ model, terms: gateway.prices.terms(model, now), bound: null })
  exchange.priced = priced
  const payer = exchange.shadowed === null ? view.gateway.spendOwner : 'organization'
  const accounts = spendAccountsOf(token, view.limits, payer)
  const { owner, requests } = accounts
  const money = moneyAccountsFor(accounts, exchange.attributed)
  exchange.spendOwner = owner
  exchange.bodyLength = required(exchange.body).length
  if (money.length > 0) {
    limitTools(exchange, priced)
    return reserveDemand(exchange, gateway, {
      requests,
      money,
      paths: boundPaths(exchange, view.limits.excesses),
      isCounted: false,
    })
  }
  if (requests.length > 0) return reserveDemand(exchange, gateway, { requests, money, paths: [], isCounted: false })
}

/**
 * Asks no limit for more than it can ever have or the request needs at least. Asks each limit for at least a
 * nano-dollar, which is returned, so that a used-up limit refuses free requests too.
 */
function moneyDemands(exchange: Exchange, accounts: readonly MoneyAccount[], paths: readonly BoundedPath[]): Demand[] {
  const [first] = paths
  if (first === undefined) return accounts.map(({ account }) => ({ account, want: 1, min: 1 }))
  let want = 1
  for (const { bound } of paths) want = Math.max(want, boundedCost(bound, bound.most))
  // Whichever target of the model is chosen first, the one that costs least may answer.
  const min = Math.min(...targetsOf(first, paths).map((path) => minCost(exchange, path)))
  return accounts.map(({ account, limit }) => {
    return { account, want: Math.max(min, Math.min(want, limit, maxRequestedAmount)), min }
  })
}

const targetsOf = ({ model }: BoundedPath, paths: readonly BoundedPath[]): BoundedPath[] =>
  paths.filter((path) => path.model.id === model.id)

/** The amounts requested, with the bounds they come from. */
interface ReservationRequest {
  requests: readonly Demand[]
  money: readonly MoneyAccount[]
  paths: readonly BoundedPath[]
  /** The input was counted by the model's tokenizer. */
  isCounted: boolean
}

function reserveDemand(exchange: Exchange, gateway: Gateway, demand: ReservationRequest): Promise<void> | void {
  const demands = [...demand.requests, ...moneyDemands(exchange, demand.money, demand.paths)]
  let reserved: Reservation | Promise<Reservation>
  try {
    reserved = gateway.worker.usageLimits.reserve(demands, exchange.call.abort.signal)
  } catch (thrown) {
    return reserveCounted(exchange, gateway, demand, thrown)
  }
  if (reserved instanceof Promise) return reserveDemandLater(exchange, gateway, reserved, demand)
  exchange.reservation = reserved
  limitToGrant(exchange, gateway, reserved, demand.paths)
}

async function reserveDemandLater(
  exchange: Exchange,
  gateway: Gateway,
  reserved: Promise<Reservation>,
  asked: ReservationRequest,
): Promise<void> {
  let reservation: Reservation
  try {
    reservation = await reserved
  } catch (thrown) {
    return reserveCounted(exchange, gateway, asked, thrown)
  }
  exchange.reservation = reservation
  limitToGrant(exchange, gateway, reservation, asked.paths)
}

/** Reserves again with the input counted by the tokenizer if that may help; otherwise throws the refusal. */
function reserveCounted(
  exchange: Exchange,
  gateway: Gateway,
  asked: ReservationRequest,
  thrown: unknown,
): Promise<void> {
  const counting = asked.isCounted ? null : countInput(exchange, gateway, asked.paths, thrown)
  if (counting === null) throw failureOf(thrown, exchange, gateway, asked)
  return counting.then((paths) => {
    checkLive(exchange, gateway)
    if (paths === null) throw failureOf(thrown, exchange, gateway, asked)
    return reserveDemand(exchange, gateway, { ...asked, paths, isCounted: true })
  })
}

function failureOf(thrown: unknown, { token }: Exchange, gateway: Gateway, asked: ReservationRequest): Failure {
  if (!(thrown instanceof UsageRefused)) return asFailure(thrown)
  return usageFailure(thrown, {
    ...refusalContext(required(token), gateway),
    detail: shortfall(thrown, asked.paths[0]),
  })
}

/** Each text follows "tokens of input, ". */
const countedBy = {
  bytes: 'as many as it has bytes',
  tokenizer: "as the model's tokenizer counts them, with a margin",
  window: 'as many as the model can take',
}

/** States what the request may cost, how its input was counted and how much input would fit. */
function shortfall({ left }: UsageRefused, path: BoundedPath | undefined): string | undefined {
  if (path === undefined || path.bound.input === null) return undefined
  const { bound, excess } = path
  const { tokens, rate, of } = path.bound.input
  const least = boundedCost(bound, bound.least)
  const said = [`it may cost $${fromNano(least)} with ${tokens} tokens of input, ${countedBy[of]}`]
  if (excess > 0) said.push(`$${fromNano(excess)} of that is what the provider charged beyond its list price before`)
  const spare = left === null || rate === 0 ? 0 : Math.floor(((left - least) * 1000) / rate) + tokens
  if (spare > 0) said.push(`an input of ${spare} tokens would fit`)
  return said.join('; ')
}

/** Lowers the output limit to the granted amount and leaves out fallbacks that would still cost more. */
function limitToGrant(
  exchange: Exchange,
  gateway: Gateway,
  { held }: Reservation,
  paths: readonly BoundedPath[],
): void {
  const [requested] = paths
  if (requested === undefined) return
  let granted = Number.POSITIVE_INFINITY
  for (const { account, amount } of held) if (countsMoney(account)) granted = Math.min(granted, amount)
  const first = targetsOf(requested, paths).find((path) => minCost(exchange, path) <= granted) ?? requested
  const most = affordableOutput(first.bound, granted)
  const limit = most < first.bound.most ? most : Number.POSITIVE_INFINITY
  for (const { priced, bound, excess } of paths) {
    priced.bound = { listed: boundedCost(bound, Math.min(bound.most, limit)) - excess, excess }
  }
  if (most === first.bound.most && paths.length === 1) return
  if (most < first.bound.most) limitOutput(exchange, most)
  exchange.paths = paths
    .filter(({ bound }) => boundedCost(bound, Math.min(bound.most, limit)) <= granted)
    .map(({ model }) => model)
  const [affordable] = exchange.paths
  if (affordable === undefined) throw new Failure('internal', { cause: new Error('Less was granted than asked for') })
  exchange.model = affordable
  if (exchange.maxOutputTokens !== null) translateLowered(exchange, gateway)
}

/** A lowered limit may be too low for other fields: thinking has a minimum budget. */
function translateLowered(exchange: Exchange, gateway: Gateway): void {
  try {
    translateRequest(exchange, gateway)
  } catch (thrown) {
    if (!(thrown instanceof Failure) || thrown.code !== 'translation_unsupported') throw thrown
    const message = `The budget pays for ${exchange.maxOutputTokens} tokens of output: ${thrown.message}`
    throw new Failure('usage_authorization_budget_exceeded', { message, ...(thrown.param && { param: thrown.param }) })
  }
}

/** Lowers every field that limits the output. A lower value stays, and an unsupported field is not written. */
function limitOutput(exchange: Exchange, tokens: number): void {
  const { parsed, edits } = exchange
  const names = limitMembers(exchange)
  if (parsed === null || names.length === 0) return
  const defaultLimit = Math.min(tokens, ...exchange.priced.map(defaultOutputLimit))
  for (const name of names) {
    const own = parsed[name]
    if (typeof own === 'number' && own < 1) {
      throw new Failure('invalid_parameter', { param: name, message: `${name} must be at least 1: a budget limits it` })
    }
    if (typeof own === 'number' && own <= tokens) continue
    const limit = typeof own === 'number' ? tokens : defaultLimit
    edits.set(name, JSON.stringify(limit))
    // A translated body is made from these fields.
    parsed[name] = limit
    exchange.maxOutputTokens = limit
  }
  exchange.maxOutputTokens ??= tokens
}

/** The output limit of a path for a caller that set none. */
const defaultOutputLimit = ({ model, terms }: PricedPath): number =>
  terms.maxOutputTokens ?? outputMaximum(model.upstreamModel)
