/**
 * What the makers of Bedrock's models read beside Converse's own members (AWS Bedrock user guide, model parameters):
 * Anthropic `top_k` and `thinking`, and which stop sequence was met by the path `/stop_sequence` of the answer; Amazon's
 * Nova `inferenceConfig.topK`; OpenAI's open models `reasoning_effort`. For others it is refused.
 */
import type { JsonObject } from '../dialects/json-value.ts'
import type { NeutralReasoning, NeutralRequest, Stated } from './neutral.ts'
import { unsupported } from './unsupported.ts'

type Maker = 'anthropic' | 'nova' | 'gpt-oss' | 'other'

/** Of a model's id, of an inference profile's (`eu.anthropic.…`), or of the ARN of either. */
function makerOf(model: string): Maker {
  if (/(^|[./])anthropic\./.test(model)) return 'anthropic'
  if (/(^|[./])amazon\.nova/.test(model)) return 'nova'
  return /(^|[./])openai\.gpt-oss/.test(model) ? 'gpt-oss' : 'other'
}

export interface ModelFields {
  /** For `additionalModelRequestFields`. */
  fields: JsonObject
  /** For `additionalModelResponseFieldPaths`. */
  answerPaths: readonly string[]
}

export function modelFields({ model, sampling, reasoning }: NeutralRequest): ModelFields {
  const maker = makerOf(model)
  const { topK, stop, maxOutputTokens } = sampling
  const fields = {
    ...(topK !== undefined && topKField(maker, topK)),
    ...(reasoning !== null && reasoningField(maker, reasoning, maxOutputTokens?.value ?? null)),
  }
  const asksStop = maker === 'anthropic' && stop !== undefined && stop.value.length > 0
  return { fields, answerPaths: asksStop ? ['/stop_sequence'] : [] }
}

function topKField(maker: Maker, { value, at }: Stated<number>): JsonObject {
  if (maker === 'anthropic') return { top_k: value }
  if (maker === 'nova') return { inferenceConfig: { topK: value } }
  throw unsupported(at, 'This model of Bedrock is not known to take it: leave it out')
}

/** Tokens to think with, for makers who count them. */
const budgets: ReadonlyMap<string, number> = new Map([
  ['minimal', 1024],
  ['low', 2048],
  ['medium', 8192],
  ['high', 16_384],
])
const openEfforts: ReadonlySet<string> = new Set(['low', 'medium', 'high'])
/** The least that Anthropic takes. */
const leastBudget = 1024

function reasoningField(maker: Maker, { value, at }: Stated<NeutralReasoning>, most: number | null): JsonObject {
  const { effort, budgetTokens } = value
  if (effort === 'none' || (effort === null && budgetTokens === null)) return {}
  if (maker === 'anthropic') return { thinking: { type: 'enabled', budget_tokens: budgetOf(value, most, at) } }
  if (maker === 'gpt-oss' && effort !== null) {
    if (!openEfforts.has(effort)) throw unsupported(at, 'This model takes low, medium or high')
    return { reasoning_effort: effort }
  }
  throw unsupported(at, 'This model of Bedrock is not known to take it: leave it out')
}

/** Thinking is part of the output: a budget made from an effort leaves at least half of the limit for the answer. */
function budgetOf({ effort, budgetTokens }: NeutralReasoning, most: number | null, at: string): number {
  if (budgetTokens !== null) return budgetTokens
  const wanted = budgets.get(effort ?? '')
  if (wanted === undefined) throw unsupported(at, 'The most that this model is asked to think is high')
  const budget = most === null ? wanted : Math.min(wanted, Math.floor(most / 2))
  if (budget < leastBudget) {
    throw unsupported(at, `Thinking needs a limit of the output of at least ${2 * leastBudget} tokens`)
  }
  return budget
}
