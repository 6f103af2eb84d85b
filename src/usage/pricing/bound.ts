/**
 * The most that a request can cost, before it is sent (usage/pricing/README.md).
 *
 * 1. Input: no tokenizer makes more tokens than there are UTF-8 bytes. So the bound is the body's length plus an
 *    allowance for what templates put around each message, or the context window if that is smaller. Input that the
 *    body does not contain or whose bytes do not bound it, such as pictures, counts as the window (the dialect says
 *    so). If that would refuse the request, its text is counted with the model's tokenizer if a public one exists:
 *    OpenAI's models have one, Anthropic's and Google's have none. No smaller share of the bytes is safe for those:
 *    rare scripts, random letters and symbols take a token for each byte or two in every known vocabulary.
 * 2. Tools that the provider runs read the whole context once more for each use, so they multiply the input.
 * 3. Output: the caller's limit, the catalog's, or the window, times the number of choices.
 * 4. Each token at the highest rate of every tier that the input can reach. An input token that may be written to a
 *    cache counts at that rate.
 *
 * Only the catalog's `max_output_tokens` says how much a model writes; the embedded price table has windows only.
 * Without it the window is the bound. The limit that is written for a caller without one is another matter
 * (`output-maximum.ts`).
 *
 * A request without a bound is refused to tokens with a budget, and the error names the field. Not covered: a provider
 * that bills above its price list. The outcome books that in full and says that the bound was exceeded.
 */

import { Failure } from '../../failure.ts'
import type { RequestFacts } from '../../languages/dialect.ts'
import { type Family, families, membersWith } from '../../languages/families.ts'
import { nanoOf, type Price, Sum } from '../../providers/prices/price.ts'
import { multipleOf, priceInTier } from '../../providers/prices/service-tier.ts'
import { audioCost } from './cost.ts'

/** Tokens that a template adds to a request, to each of its messages, and for tools. */
const requestAllowance = 64
const messageAllowance = 16
const toolAllowance = 1024
/** Fewer bytes a second than any speech codec on a transcription route needs: 800 bits. */
const minAudioBytesPerSecond = 100

/** What a bound is computed from: the dialect's facts, the parsed body, and its length. */
export interface BoundedRequest {
  family: Family
  facts: RequestFacts
  /** Null if the body is no JSON. */
  parsed: Readonly<Record<string, unknown>> | null
  body: Uint8Array
  /** The tokens of the body's text by the model's tokenizer, if they were counted (`text-tokens.ts`). */
  textTokens?: number | null
}

export interface BoundedModel {
  /** Null where the model has no price. */
  price: Price | null
  contextWindow: number | null
  maxOutputTokens: number | null
}

export interface InputBound {
  tokens: number
  of: 'bytes' | 'tokenizer' | 'window'
}

/** A bound as a function of the output tokens of each choice, in nano-dollars. */
export interface CostBound {
  /** Nano-dollars, independent of the output. */
  fixed: number
  /** Picodollars for each output token of each choice; 0 if there is no output to limit. */
  output: number
  choices: number
  /** The largest number of output tokens of each choice. */
  most: number
  /** The smallest number with which the request makes sense. */
  least: number
  /** Input tokens, the price of each in picodollars, and their source; none if something else is billed. */
  input: (InputBound & { rate: number }) | null
}

/** The most that the request costs, in nano-dollars, with this output limit for each choice. */
export const boundedCost = (bound: CostBound, tokens: number): number =>
  bound.fixed + nanoOf(tokens * bound.choices, bound.output)

/** The largest output that `granted` nano-dollars pay for. Below `bound.least` the request cannot be served. */
export function affordableOutput(bound: CostBound, granted: number): number {
  if (granted >= boundedCost(bound, bound.most)) return bound.most
  if (bound.output === 0) return 0
  const spare = BigInt(Math.max(0, granted - bound.fixed)) * 1000n
  return Number(spare / BigInt(bound.output * bound.choices))
}

/**
 * Bounds the cost of a request on one model. Throws `tokens.model_unpriced` if the model has no price, and
 * `tokens.cost_unbounded` with the field that has no bound.
 */
export function boundOf(
  request: BoundedRequest,
  { price: list, contextWindow, maxOutputTokens }: BoundedModel,
): CostBound {
  const { facts, parsed, family } = request
  if (list === null) throw new Failure('tokens.model_unpriced', { param: 'model' })
  const price = dearestInTier(list, facts)
  if (facts.unbounded !== null) throw boundless(facts.unbounded, facts.unboundedWhy)
  // A surcharge without a list price.
  if (parsed?.inference_geo !== undefined)
    throw boundless('inference_geo', 'The surcharge of inference_geo has no listed price: leave it out')
  const { takes, gives } = families[family]
  if (takes === 'audio' && price.audioHour !== null) {
    return fixedBound(price.request + audioCost(price.audioHour, request.body.length / minAudioBytesPerSecond))
  }
  if (gives === 'audio' && price.character !== null) {
    return fixedBound(price.request + nanoOf(request.body.length, price.character))
  }
  if (gives === 'images') {
    if (price.image === undefined) throw boundless('model', "The model's price says nothing of an image: set per_image")
    return fixedBound(price.request + Math.max(1, facts.choices) * price.image)
  }
  return tokenBound(request, price, contextWindow, maxOutputTokens)
}

/**
 * The price in the requested service tier. The provider may serve the request in the standard tier instead, so
 * discounts do not count. Throws `tokens.cost_unbounded` for a tier without a known price.
 */
function dearestInTier(price: Price, { serviceTier }: RequestFacts): Price {
  if (serviceTier === undefined) return price
  const multiple = multipleOf(price, serviceTier.name)
  if (multiple === null)
    throw boundless(serviceTier.param, `The service tier has no listed price: leave ${serviceTier.param} out`)
  return multiple > 1 ? priceInTier(price, serviceTier.name) : price
}

/** `why` says what has no bound, and what to set. */
const boundless = (param: string, why = `The cost of ${param} has no bound`): Failure =>
  new Failure('tokens.cost_unbounded', {
    param,
    message: `${why}. A token with a budget cannot send a request whose cost has no upper bound`,
  })

const fixedBound = (fixed: number): CostBound => ({ fixed, output: 0, choices: 1, most: 0, least: 0, input: null })

function tokenBound(
  request: BoundedRequest,
  price: Price,
  window: number | null,
  maxOutputTokens: number | null,
): CostBound {
  const { facts, parsed } = request
  const toolUses = facts.toolUses ?? 0
  const bounded = inputBound(request, window, toolUses)
  const input = bounded.tokens
  const rates = dearest(price, input, request)
  const most = outputBound(request, window, maxOutputTokens)
  // Rejected tokens of a prediction are billed as output, on top of the limit.
  const predicted = parsed?.prediction === undefined ? 0 : input * Math.max(1, facts.choices)
  const thinking = parsed === null ? 0 : thinkingBudget(parsed)
  return {
    fixed:
      price.request + toolUses * price.toolUse + new Sum().add(input, rates.input).add(predicted, rates.output).nano,
    output: rates.output,
    choices: Math.max(1, facts.choices),
    most,
    least: Math.min(most, thinking + 1),
    input: { ...bounded, rate: rates.input },
  }
}

function inputBound(
  { family, facts, parsed, body, textTokens }: BoundedRequest,
  window: number | null,
  toolUses: number,
): InputBound {
  const { takes, manyInputs } = families[family]
  if (facts.beyondBody || toolUses > 0 || takes === 'audio') {
    if (window === null) {
      const param = toolUses > 0 ? 'tools' : takes === 'audio' ? 'file' : 'input'
      throw boundless(param, `${param} may bring any amount of input, and the context window of the model is not known`)
    }
    return { tokens: window * (toolUses + 1), of: 'window' }
  }
  const tools = hasTools(parsed) ? toolAllowance : 0
  const counted = textTokens ?? Number.POSITIVE_INFINITY
  const read = Math.min(body.length, counted) + (facts.repeatedBytes ?? 0)
  const most = read + requestAllowance + messageAllowance * messagesOf(parsed) + tools
  if (window !== null && manyInputs !== true && window < most) return { tokens: window, of: 'window' }
  return { tokens: most, of: counted < body.length ? 'tokenizer' : 'bytes' }
}

function messagesOf(parsed: BoundedRequest['parsed']): number {
  const messages = parsed?.messages ?? parsed?.contents ?? parsed?.input
  return Array.isArray(messages) ? messages.length : 1
}

const hasTools = (parsed: BoundedRequest['parsed']): boolean =>
  parsed?.tools !== undefined || parsed?.functions !== undefined

function outputBound({ family, facts }: BoundedRequest, window: number | null, maxOutputTokens: number | null): number {
  if (families[family].gives === 'numbers') return 0
  const { outputLimit } = facts
  if (outputLimit === null && maxOutputTokens === null && window === null) {
    const param = membersWith(family, 'output limit').at(-1) ?? 'input'
    throw boundless(param, `The answer may have any length: set ${param}`)
  }
  const none = Number.POSITIVE_INFINITY
  return Math.min(outputLimit ?? none, maxOutputTokens ?? none, window ?? none)
}

/** A model that thinks within a budget refuses an output limit below it. */
function thinkingBudget({ thinking }: Readonly<Record<string, unknown>>): number {
  const budget =
    typeof thinking === 'object' && thinking !== null && 'budget_tokens' in thinking ? thinking.budget_tokens : 0
  return typeof budget === 'number' && Number.isSafeInteger(budget) && budget > 0 ? budget : 0
}

interface Rates {
  input: number
  output: number
}

/**
 * The highest rates of every tier that this much input reaches. Rates of a one-hour cache and of audio count only if
 * they are higher and the body may ask for them.
 */
function dearest({ tiers }: Price, input: number, request: BoundedRequest): Rates {
  const most: Rates = { input: 0, output: 0 }
  let hour = 0
  let sound = 0
  for (const tier of tiers) {
    if (tier.fromInputTokens > input) continue
    most.input = Math.max(most.input, tier.input, tier.cachedInput, tier.cacheWrite)
    most.output = Math.max(most.output, tier.output, tier.reasoning, tier.audioOutput)
    hour = Math.max(hour, tier.cacheWriteHour)
    sound = Math.max(sound, tier.audioInput)
  }
  if (hour > most.input && mayHold(request.body, '"1h"')) most.input = hour
  if (sound > most.input && maySound(request)) most.input = sound
  return most
}

const maySound = ({ family, body }: BoundedRequest): boolean =>
  families[family].takes === 'audio' || families[family].hears === true || mayHold(body, 'audio')

/**
 * Whether an ASCII text is or may be in a body: letters and digits may be written as escapes (RFC 8259 section 7),
 * which no encoder does by default.
 */
function mayHold(body: Uint8Array, text: string): boolean {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.length)
  if (bytes.includes(text)) return true
  if (!bytes.includes('\\u00')) return false
  return (text.match(/\w/g) ?? []).some((letter) => {
    const code = letter.charCodeAt(0).toString(16)
    return bytes.includes(`\\u00${code}`) || bytes.includes(`\\u00${code.toUpperCase()}`)
  })
}
