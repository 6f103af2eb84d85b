/**
 * How much Anthropic's models should think (Messages API, `thinking` and `output_config.effort`), for Anthropic
 * itself and for Bedrock, which passes both on. From 4.6 on an effort goes with adaptive thinking. Models up to 4.5
 * only take a budget in tokens, which counts towards the output limit; each effort has its budget here.
 */

import type { Effort, NeutralReasoning, Stated } from '../../neutral.ts'
import type { JsonObject } from '../../reading/json-value.ts'
import { type Lenience, nearestEffort } from '../../translation/lenience.ts'
import { unsupported } from '../../translation/translation-errors.ts'

export interface Thinking {
  /** null if the request does not mention thinking. */
  thinking: JsonObject | null
  /** For `output_config`. */
  config: JsonObject
  /** Tokens of the output that thinking may take. */
  budget: number | null
}

/** The API's minimum is 1024. */
const leastBudget = 1024
const budgets: Readonly<Record<Exclude<Effort, 'none'>, number>> = {
  minimal: 1024,
  low: 2048,
  medium: 8192,
  high: 16_384,
  xhigh: 24_576,
  max: 32_768,
}

/** For a caller who asks for thinking, or to see it, without an amount. */
const usualEffort = 'medium'

/** `claude-3-7-sonnet-20250219`, `claude-sonnet-4-5`, `eu.anthropic.claude-haiku-4-5-20251001-v1:0`. */
const budgetedModels = /claude-(?:3\b|(?:opus|sonnet|haiku)-4(?:-[0-5])?(?=$|@|-\d{8}|-latest|-v\d))/

const nothing: Thinking = { thinking: null, config: {}, budget: null }

/** `most`: the limit of the output that the caller gave. */
export function thinkingOf(
  model: string,
  reasoning: Stated<NeutralReasoning> | null,
  most: number | null,
  lenience?: Lenience,
): Thinking {
  if (reasoning === null) return nothing
  const { value, at } = reasoning
  const { effort, budgetTokens, visible } = value
  if (effort === 'none') return { ...nothing, thinking: { type: 'disabled' } }
  const display = visible === null ? {} : { display: visible ? 'summarized' : 'omitted' }
  if (budgetTokens !== null) {
    const thinking = { type: 'enabled', budget_tokens: budgetTokens, ...display }
    return { thinking, config: configOf(effort, at, lenience), budget: budgetTokens }
  }
  if (!budgetedModels.test(model)) {
    return { ...nothing, thinking: { type: 'adaptive', ...display }, config: configOf(effort, at, lenience) }
  }
  const budget = budgetWithin(budgets[effort ?? usualEffort], most, at)
  return { ...nothing, thinking: { type: 'enabled', budget_tokens: budget, ...display }, budget }
}

/**
 * A budget derived from an effort leaves at least half of the limit for the answer: the API refuses a budget above the
 * limit.
 */
function budgetWithin(wanted: number, most: number | null, at: string): number {
  const budget = most === null ? wanted : Math.min(wanted, Math.floor(most / 2))
  if (budget >= leastBudget) return budget
  throw unsupported(at, `thinking needs a limit of the output of at least ${2 * leastBudget} tokens`)
}

const known = ['low', 'medium', 'high', 'xhigh', 'max'] as const

const configOf = (effort: Effort | null, at: string, lenience: Lenience | undefined): JsonObject =>
  effort === null ? {} : { effort: nearestEffort(lenience, effort, known, at, 'the least effort of this model is low') }
