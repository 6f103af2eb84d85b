/**
 * A request in Anthropic's messages language (Messages API, version 2023-06-01). Its own rules:
 *
 * - `max_tokens` is required. If the caller gives none, it is the catalog's maximum for the model, and without one
 *   8192 tokens, which every served model can write; a budget for thinking is added to that.
 * - `tool_choice` holds whether calls may be parallel, and is sent only with tools.
 */

import type { NeutralOutput, NeutralRequest, NeutralTool, Stated } from '../../neutral.ts'
import type { JsonObject } from '../../reading/json-value.ts'
import { instructJson, type Lenience, leaveOut, withJsonInstruction } from '../../translation/lenience.ts'
import { settingWriter } from '../../translation/settings.ts'
import { unsupported } from '../../translation/translation-errors.ts'
import type { WriteOptions } from '../../translation-language.ts'
import { messagesMembers } from '../members.ts'
import { thinkingOf } from './thinking-budget.ts'
import { blocksOf, cacheControl, messagesOf } from './write-parts.ts'

export const defaultMaxTokens = 8192

export function writeMessagesRequest(
  request: NeutralRequest,
  { catalogMaximum = null, lenience }: WriteOptions = {},
): JsonObject {
  const settings = settingsOf(request.sampling)
  refuseExtras(request, lenience)
  const { model, instructions, turns, tools, sampling, endUser, stream } = request
  const reasoning = thinkingOf(model, request.reasoning, sampling.maxOutputTokens?.value ?? null, lenience)
  const output = { ...reasoning.config, ...formatOf(request.output, lenience) }
  const system = withJsonInstruction(instructions, request.output)
  const budget = reasoning.budget ?? 0
  return {
    model,
    max_tokens: sampling.maxOutputTokens?.value ?? catalogMaximum ?? defaultMaxTokens + budget,
    ...(system.length > 0 && { system: system.flatMap(blocksOf) }),
    messages: messagesOf(turns),
    ...(tools.length > 0 && { tools: tools.map(toolOf) }),
    ...toolChoiceOf(request),
    ...(reasoning.thinking !== null && { thinking: reasoning.thinking }),
    ...(Object.keys(output).length > 0 && { output_config: output }),
    ...settings,
    ...(endUser !== null && { metadata: { user_id: endUser.value } }),
    ...serviceTierOf(request.extras.get('service_tier')),
    ...(stream && { stream }),
  }
}

const settingsOf = settingWriter(messagesMembers, ({ value, at }, setting) => {
  if (setting === 'seed') throw unsupported(at, 'this provider takes no seed')
  if (value !== 0) throw unsupported(at, 'this provider has no penalties')
})

function refuseExtras({ extras }: NeutralRequest, lenience: Lenience | undefined): void {
  for (const [name, { at }] of extras) {
    if (name === 'verbosity') leaveOut(lenience, at, 'this provider has no member like this one')
    else if (name !== 'service_tier') throw unsupported(at, 'this provider has no member like this one')
  }
}

const toolOf = ({ name, description, parameters, strict, cache }: NeutralTool): JsonObject => ({
  name,
  ...(description !== null && { description }),
  input_schema: { type: 'object', ...parameters },
  ...(strict !== null && { strict }),
  ...(cache !== undefined && { cache_control: cacheControl(cache.value.ttl) }),
})

function toolChoiceOf({ toolChoice, parallelTools, tools }: NeutralRequest): JsonObject {
  const chosen = toolChoice?.value ?? 'auto'
  if (chosen === 'none') return { tool_choice: { type: 'none' } }
  if (toolChoice === null && (parallelTools === null || tools.length === 0)) return {}
  const choice = typeof chosen === 'object' ? { type: 'tool', name: chosen.name } : { type: choices[chosen] }
  const parallel = parallelTools === null ? {} : { disable_parallel_tool_use: !parallelTools.value }
  return { tool_choice: { ...choice, ...parallel } }
}

const choices = { auto: 'auto', required: 'any' } as const

function formatOf(output: Stated<NeutralOutput> | null, lenience: Lenience | undefined): JsonObject {
  if (output === null || output.value.form === 'text') return {}
  if (output.value.form === 'json') {
    instructJson(lenience, output, 'this provider keeps to a JSON schema or to none: send the schema')
    return {}
  }
  return { format: { type: 'json_schema', schema: describedSchema(output.value) } }
}

/**
 * A description of the output becomes the schema's own if the schema has none: the language has no other place for it.
 */
export const describedSchema = ({ schema, description }: Extract<NeutralOutput, { form: 'schema' }>): JsonObject =>
  description === null ? { ...schema } : { description, ...schema }

/** `standard_only` is `default` in other languages. */
function serviceTierOf(tier: Stated<unknown> | undefined): JsonObject {
  if (tier === undefined || tier.value === null) return {}
  if (tier.value === 'auto') return { service_tier: 'auto' }
  if (tier.value === 'default') return { service_tier: 'standard_only' }
  throw unsupported(tier.at, 'this provider has no such tier: send auto or default')
}
