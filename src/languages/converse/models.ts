/**
 * What the makers of Bedrock's models read beside Converse's own members (AWS Bedrock user guide, model parameters):
 * Anthropic `top_k`, `thinking` and `output_config`, and which stop sequence was met by the path `/stop_sequence` of
 * the answer; Amazon's Nova `inferenceConfig.topK`; OpenAI's open models `reasoning_effort`. For others it is refused.
 */

import { thinkingOf } from '../messages/translation/thinking-budget.ts'
import type { NeutralReasoning, NeutralRequest, Stated } from '../neutral.ts'
import type { JsonObject } from '../reading/json-value.ts'
import { type Lenience, leaveOut, nearestEffort } from '../translation/lenience.ts'

type Maker = 'anthropic' | 'nova' | 'gpt-oss' | 'other'

/** Matches a model's id, an inference profile's (`eu.anthropic.…`), or the ARN of either. */
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

export function modelFields({ model, sampling, reasoning }: NeutralRequest, lenience?: Lenience): ModelFields {
  const maker = makerOf(model)
  const { topK, stop, maxOutputTokens } = sampling
  const fields = {
    ...(topK !== undefined && topKField(maker, topK, lenience)),
    ...(reasoning !== null && reasoningField(model, maker, reasoning, maxOutputTokens?.value ?? null, lenience)),
  }
  const asksStop = maker === 'anthropic' && stop !== undefined && stop.value.length > 0
  return { fields, answerPaths: asksStop ? ['/stop_sequence'] : [] }
}

function topKField(maker: Maker, { value, at }: Stated<number>, lenience: Lenience | undefined): JsonObject {
  if (maker === 'anthropic') return { top_k: value }
  if (maker === 'nova') return { inferenceConfig: { topK: value } }
  leaveOut(lenience, at, 'this model of Bedrock is not known to take it: leave it out')
  return {}
}

const openEfforts = ['low', 'medium', 'high'] as const

function reasoningField(
  model: string,
  maker: Maker,
  reasoning: Stated<NeutralReasoning>,
  most: number | null,
  lenience: Lenience | undefined,
): JsonObject {
  const { value, at } = reasoning
  const { effort, budgetTokens, visible } = value
  if (maker === 'anthropic') {
    const { thinking, config } = thinkingOf(model, reasoning, most, lenience)
    return { thinking, ...(Object.keys(config).length > 0 && { output_config: config }) }
  }
  if (maker === 'gpt-oss' && effort !== null && budgetTokens === null) {
    return {
      reasoning_effort: nearestEffort(lenience, effort, openEfforts, at, 'this model takes low, medium or high'),
    }
  }
  if (effort === 'none' || (effort === null && budgetTokens === null && visible !== true)) return {}
  leaveOut(lenience, at, 'this model of Bedrock is not known to take it: leave it out')
  return {}
}
