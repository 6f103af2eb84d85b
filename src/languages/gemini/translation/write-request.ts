/**
 * A request in Gemini's language: `generateContent` of the API `v1beta`. The model and whether to stream stand in the
 * path (`providers/kinds/gemini.ts`). Schemas go as they are, in the members that take JSON Schema. Names are those of
 * GenerateContentRequest, GenerationConfig, FunctionDeclaration and ToolConfig (googleapis,
 * google/ai/generativelanguage/v1beta/generative_service.proto and content.proto; Google Gen AI SDK, types).
 *
 * How much a model thinks is a level from the third generation on, and a budget in tokens before it, of which each
 * effort has the one that Google's own OpenAI-compatible route gives it (Gemini API, OpenAI compatibility, Thinking).
 * Thoughts are shown where the caller asks for them, or asks for thinking itself rather than for an effort.
 */

import type {
  NeutralMedia,
  NeutralOutput,
  NeutralPart,
  NeutralReasoning,
  NeutralRequest,
  NeutralTool,
  Stated,
} from '../../neutral.ts'
import type { JsonObject } from '../../reading/json-value.ts'
import { type Lenience, leaveOut, nearestEffort, withInstructionsFirst } from '../../translation/lenience.ts'
import { settingWriter } from '../../translation/settings.ts'
import { unsupported } from '../../translation/translation-errors.ts'
import type { WriteOptions } from '../../translation-language.ts'
import { generationConfigMembers } from '../members.ts'
import { contentsOf, isBeforeThird } from './write-contents.ts'

export function writeGeminiRequest(given: NeutralRequest, { lenience }: WriteOptions = {}): JsonObject {
  const request = withInstructionsFirst(lenience, given)
  const { model, instructions, turns, tools, extras } = request
  for (const [name, { value, at }] of extras) {
    const isDefault = name === 'service_tier' && (value === 'auto' || value === 'default')
    if (name === 'verbosity') leaveOut(lenience, at, 'this provider has no member like this one')
    else if (!isDefault) throw unsupported(at, 'this provider has no member like this one')
  }
  const generationConfig = generationConfigOf(request, lenience)
  return {
    contents: contentsOf(turns, model),
    ...(instructions.length > 0 && { systemInstruction: { parts: instructions.map(({ text }) => ({ text })) } }),
    ...(tools.length > 0 && { tools: [{ functionDeclarations: tools.map(declarationOf) }] }),
    ...toolConfigOf(request, lenience),
    ...(Object.keys(generationConfig).length > 0 && { generationConfig }),
  }
}

const declarationOf = ({ name, description, parameters }: NeutralTool): JsonObject => ({
  name,
  ...(description !== null && { description }),
  ...(parameters !== null && { parametersJsonSchema: parameters }),
})

/** Arguments match their schemas if a call is required, and in the mode VALIDATED (FunctionCallingConfig.Mode). */
function toolConfigOf(
  { toolChoice, parallelTools, tools }: NeutralRequest,
  lenience: Lenience | undefined,
): JsonObject {
  if (parallelTools !== null && !parallelTools.value && tools.length > 0) {
    leaveOut(lenience, parallelTools.at, 'this provider cannot be kept to one call at a time')
  }
  const chosen = toolChoice?.value ?? 'auto'
  if (tools.length === 0 && (chosen === 'auto' || chosen === 'none')) return {}
  const isStrict = chosen === 'auto' && tools.some(({ strict }) => strict === true)
  if (toolChoice === null && !isStrict) return {}
  const config =
    typeof chosen === 'object'
      ? { mode: 'ANY', allowedFunctionNames: [chosen.name] }
      : { mode: isStrict ? 'VALIDATED' : modes[chosen] }
  return { toolConfig: { functionCallingConfig: config } }
}

const modes = { auto: 'AUTO', none: 'NONE', required: 'ANY' } as const

/** GenerationConfig, `stop_sequences`. */
const mostStopSequences = 5

const settingsOf = settingWriter(generationConfigMembers)

function generationConfigOf(
  { model, sampling, output, reasoning, turns }: NeutralRequest,
  lenience: Lenience | undefined,
): JsonObject {
  const { stop } = sampling
  if (stop !== undefined && stop.value.length > mostStopSequences) {
    throw unsupported(stop.at, `this provider takes at most ${mostStopSequences} stop sequences`)
  }
  return {
    ...settingsOf(sampling),
    ...formatOf(output),
    ...resolutionOf(turns.flatMap(({ parts }) => parts.filter(isMedia))),
    ...(reasoning !== null && thinkingOf(model, reasoning, lenience)),
  }
}

function formatOf(output: Stated<NeutralOutput> | null): JsonObject {
  if (output === null || output.value.form === 'text') return {}
  const json = { responseMimeType: 'application/json' }
  if (output.value.form === 'json') return json
  const { schema, description } = output.value
  return { ...json, responseJsonSchema: description === null ? schema : { description, ...schema } }
}

const isMedia = (part: NeutralPart): part is NeutralMedia =>
  part.kind === 'image' || part.kind === 'document' || part.kind === 'audio'

/** GenerationConfig.MediaResolution. */
const resolutions: ReadonlyMap<string, string> = new Map([
  ['low', 'MEDIA_RESOLUTION_LOW'],
  ['high', 'MEDIA_RESOLUTION_HIGH'],
])

/** The media resolution applies to all media of a request. */
function resolutionOf(media: readonly NeutralMedia[]): JsonObject {
  const stated = media.map(({ detail }) => detail).find((detail) => detail !== undefined && detail.value !== 'auto')
  if (stated === undefined) return {}
  const mediaResolution = resolutions.get(stated.value)
  if (mediaResolution === undefined) throw unsupported(stated.at, 'this provider knows low, high and auto')
  if (media.some(({ detail }) => detail?.value !== stated.value)) {
    throw unsupported(stated.at, 'this provider looks at all media of a request in one way: give each the same detail')
  }
  return { mediaResolution }
}

/**
 * Gemini API reference, ThinkingLevel: its values are in upper case. The guides write lower case, which is accepted
 * too.
 */
const levels = ['minimal', 'low', 'medium', 'high'] as const

const budgets = { none: 0, minimal: 1024, low: 1024, medium: 8192, high: 24_576 } as const
const budgeted = ['none', 'minimal', 'low', 'medium', 'high'] as const

function thinkingOf(
  model: string,
  { value, at }: Stated<NeutralReasoning>,
  lenience: Lenience | undefined,
): JsonObject {
  const { effort, visible } = value
  const shown = visible ?? effort === null
  const thinkingConfig = { ...amountOf(model, value, at, lenience), ...(shown && { includeThoughts: true }) }
  return Object.keys(thinkingConfig).length === 0 ? {} : { thinkingConfig }
}

/** A budget is more exact than an effort, and the API refuses both together. */
function amountOf(
  model: string,
  { effort, budgetTokens: budget }: NeutralReasoning,
  at: string,
  lenience: Lenience | undefined,
): JsonObject {
  if (budget !== null && effort !== 'none') return { thinkingBudget: budget }
  if (effort === null) return isBeforeThird(model) ? { thinkingBudget: -1 } : {}
  if (isBeforeThird(model)) {
    return {
      thinkingBudget: budgets[nearestEffort(lenience, effort, budgeted, at, 'the most effort of this model is high')],
    }
  }
  const level = nearestEffort(lenience, effort, levels, at, 'this model always thinks: from minimal to high')
  return { thinkingLevel: level.toUpperCase() }
}
