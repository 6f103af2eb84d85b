/**
 * What a batch used, from the lines of its output: each answer counts once, by its reported usage at the price of
 * batches. An answer without usage counts as much as its share of the worst case. Providers that sum up the usage of a
 * batch are believed about what their lines leave out.
 */
import type { Usage } from '../../../languages/dialect.ts'
import type { Family } from '../../../languages/families.ts'
import { dialects } from '../../../languages/index.ts'
import { isObject } from '../../../languages/reading/json-value.ts'
import type { Price } from '../../../providers/prices/price.ts'
import type { BatchUse } from '../../../usage/batches/batch-protocol.ts'
import { maxAmount } from '../../../usage/lease/lease.ts'
import { costOf } from '../../../usage/pricing/cost.ts'
import { noUsage } from '../../accounting/usage.ts'
import { batchTier } from '../upload/check-line.ts'
import type { OutputLine } from './output-lines.ts'

export interface BatchTerms {
  readonly family: Family
  readonly lines: number
  /** The most that all lines can cost, in nano-dollars; null if that is not known. */
  readonly bound: number | null
  readonly price: Price | null
}

interface Tokens {
  input: number
  output: number
}

type Counted = Pick<
  BatchUse,
  | 'cost'
  | 'requests'
  | 'estimated'
  | 'input_tokens'
  | 'output_tokens'
  | 'cached_input_tokens'
  | 'reasoning_tokens'
  | 'notes'
>

/** Lines of unknown requests that are booked for a batch of any size. */
const fewUnknown = 100

export class OutputUsage {
  readonly #terms: BatchTerms
  /** Lines beyond these are not read: no provider answers so many requests that nobody made. */
  readonly #mostIds: number
  /** Hashes of the ids that have an answer, and of those that have an error. */
  readonly #answered = new Set<bigint | number>()
  readonly #failed = new Set<bigint | number>()
  readonly #notes = new Set<string>()
  #cost = 0
  #unreported = 0
  #input = 0
  #output = 0
  #cached = 0
  #reasoning = 0

  constructor(terms: BatchTerms) {
    this.#terms = terms
    this.#mostIds = 2 * terms.lines + fewUnknown
  }

  add({ customId, answer, isError }: OutputLine): void {
    // A line without an id is one of its own.
    const id = Bun.hash(customId ?? `without an id ${this.#answered.size}`)
    if (this.#answered.has(id)) {
      this.#notes.add('batch.line_repeated')
      return
    }
    if (this.#answered.size + this.#failed.size >= this.#mostIds) {
      this.#notes.add('batch.lines_unknown')
      return
    }
    if (isError) {
      this.#failed.add(id)
      return
    }
    this.#answered.add(id)
    const usage = answer === null ? null : dialects[this.#terms.family].readAnswer(answer).usage
    if (usage === null || usage.inputTokens === null) {
      this.#unreported += 1
      this.#notes.add('batch.usage_missing')
      return
    }
    this.#input += usage.inputTokens
    this.#output += usage.outputTokens ?? 0
    this.#cached += usage.cachedInputTokens ?? 0
    this.#reasoning += usage.reasoningTokens ?? 0
    this.#cost += this.#costOf(usage)
  }

  /**
   * What all of it used. `completed` is how many lines the provider says it answered, `reported` the tokens that it says
   * all of them took; null where it says nothing.
   */
  end(completed: number | null, reported: Tokens | null): Counted {
    const { lines } = this.#terms
    const absent = Math.max(0, Math.min(completed ?? 0, lines) - this.#answered.size)
    if (absent > 0) this.#notes.add('batch.lines_missing')
    if (this.#answered.size + this.#failed.difference(this.#answered).size > lines)
      this.#notes.add('batch.lines_unknown')
    const unseen = absent + this.#unreported
    const unseenInput = unseen === 0 ? 0 : (reported?.input ?? 0)
    const unseenOutput = unseen === 0 ? 0 : (reported?.output ?? 0)
    return {
      cost: this.#terms.price === null ? null : bookable(this.#cost + this.#costOfUnseen(unseen, reported)),
      requests: this.#answered.size + absent,
      estimated: unseen > 0,
      input_tokens: bookable(Math.max(this.#input, unseenInput)),
      output_tokens: bookable(Math.max(this.#output, unseenOutput)),
      cached_input_tokens: bookable(this.#cached),
      reasoning_tokens: bookable(this.#reasoning),
      notes: [...this.#notes],
    }
  }

  #costOfUnseen(unseen: number, reported: Tokens | null): number {
    if (unseen === 0) return 0
    if (reported !== null) {
      const inputTokens = Math.ceil(Math.max(0, reported.input - this.#input) / unseen)
      const outputTokens = Math.ceil(Math.max(0, reported.output - this.#output) / unseen)
      return unseen * this.#costOf({ ...noUsage, inputTokens, outputTokens })
    }
    const { bound, lines } = this.#terms
    if (bound === null) return 0
    // An estimate never exceeds what is held.
    return Math.min(unseen * Math.ceil(bound / lines), Math.max(0, bound - this.#cost))
  }

  #costOf(usage: Usage): number {
    const { price, family } = this.#terms
    return price === null ? 0 : costOf(price, family, { ...usage, serviceTier: batchTier })
  }
}

/** No limit is larger, and more would be no exact integer. */
const bookable = (amount: number): number => Math.min(Math.ceil(amount), maxAmount)

/** The tokens that a batch says all of its lines took; null where it does not. */
export function reportedTokens(usage: unknown): Tokens | null {
  if (!isObject(usage)) return null
  const { input_tokens: input, output_tokens: output } = usage
  if (!isCount(input) || !isCount(output) || input === 0) return null
  return { input, output }
}

export const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0
