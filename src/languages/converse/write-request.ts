/**
 * A request in the language of Bedrock's Converse (AWS Bedrock Runtime API, Converse and ConverseStream, whose bodies
 * have the same form: ConverseRequest, InferenceConfiguration, ToolConfiguration, OutputConfig, ServiceTier).
 * Consecutive turns of one side become one message, because Converse requires alternating turns.
 *
 * Settings for which the API has no member go into `additionalModelRequestFields` if the model's maker is known to
 * read them there (`models.ts`); for other makers they are refused.
 */

import type { NeutralOutput, NeutralRequest, NeutralTool, Stated } from '../neutral.ts'
import type { JsonObject } from '../reading/json-value.ts'
import {
  instructJson,
  type Lenience,
  leaveOut,
  withInstructionsFirst,
  withJsonInstruction,
} from '../translation/lenience.ts'
import { settingWriter } from '../translation/settings.ts'
import { unsupported } from '../translation/translation-errors.ts'
import type { WriteOptions } from '../translation-language.ts'
import { inferenceConfigMembers } from './members.ts'
import { modelFields } from './models.ts'
import { contentBlocks, systemBlocks, withCachePoint } from './write-parts.ts'

export function writeConverseRequest(given: NeutralRequest, { lenience }: WriteOptions = {}): JsonObject {
  const request = withInstructionsFirst(lenience, given)
  const config = inferenceConfig(request)
  refuseUnheard(request, lenience)
  const system = systemBlocks(withJsonInstruction(request.instructions, request.output))
  const tools = toolConfig(request)
  const { fields, answerPaths } = modelFields(request, lenience)
  const metadata = requestMetadata(request)
  const output = outputConfig(request.output, lenience)
  const tier = serviceTier(request)
  return {
    ...(system.length > 0 && { system }),
    messages: messagesOf(request),
    ...(Object.keys(config).length > 0 && { inferenceConfig: config }),
    ...(tools !== null && { toolConfig: tools }),
    ...(output !== null && { outputConfig: output }),
    ...(tier !== null && { serviceTier: tier }),
    ...(Object.keys(fields).length > 0 && { additionalModelRequestFields: fields }),
    ...(answerPaths.length > 0 && { additionalModelResponseFieldPaths: answerPaths }),
    ...(metadata !== null && { requestMetadata: metadata }),
  }
}

/** Members of other languages that mean nothing here, or for which Bedrock's models have no common form. */
function refuseUnheard({ extras, parallelTools }: NeutralRequest, lenience: Lenience | undefined): void {
  for (const [name, { at }] of extras) {
    if (name === 'verbosity') leaveOut(lenience, at, 'Converse has no such member: leave it out')
    else if (name !== 'service_tier') throw unsupported(at, 'Converse has no such member: leave it out')
  }
  if (parallelTools?.value === false) {
    leaveOut(lenience, parallelTools.at, 'Converse cannot forbid parallel tool calls: leave it out')
  }
}

function messagesOf({ turns }: NeutralRequest): JsonObject[] {
  const messages: { role: string; content: JsonObject[] }[] = []
  const names = new Set<string>()
  for (const turn of turns) {
    if (turn.role === 'system') throw unsupported(turn.at, 'instructions stand before the conversation in Converse')
    if (turn.name !== undefined) throw unsupported(turn.name.at, 'Converse has no names of speakers: leave it out')
    const role = turn.role === 'assistant' ? 'assistant' : 'user'
    const content = turn.parts.flatMap((part) => contentBlocks(part, names))
    const last = messages.at(-1)
    if (last?.role === role) last.content.push(...content)
    else if (content.length > 0) messages.push({ role, content })
  }
  return messages
}

function inferenceConfig({ sampling }: NeutralRequest): JsonObject {
  const { stop, ...numbers } = sampling
  return settingsOf(stop?.value.length === 0 ? numbers : sampling)
}

const settingsOf = settingWriter(inferenceConfigMembers, ({ value, at }, setting) => {
  // The models of some makers have it (`models.ts`).
  if (setting === 'topK' || (setting !== 'seed' && value === 0)) return
  throw unsupported(at, 'Converse has no such setting: leave it out')
})

/** The choice "none" is written as no tools. A conversation that contains tool calls does not allow that. */
function toolConfig({ tools, toolChoice, turns }: NeutralRequest): JsonObject | null {
  if (tools.length === 0) return null
  const choice = toolChoice?.value
  if (toolChoice !== null && choice === 'none') {
    const called = turns.some(({ parts }) => parts.some(({ kind }) => kind === 'tool_call' || kind === 'tool_result'))
    if (!called) return null
    throw unsupported(toolChoice.at, 'Converse cannot forbid tools in a conversation that has used some')
  }
  return {
    tools: tools.flatMap((tool) => withCachePoint({ toolSpec: toolSpec(tool) }, tool.cache)),
    ...(choice !== undefined && { toolChoice: choiceOf(choice) }),
  }
}

const toolSpec = ({ name, description, parameters, strict }: NeutralTool): JsonObject => ({
  name,
  ...(description !== null && description !== '' && { description }),
  inputSchema: { json: parameters ?? { type: 'object', properties: {} } },
  ...(strict === true && { strict }),
})

function choiceOf(choice: NonNullable<NeutralRequest['toolChoice']>['value']): JsonObject {
  if (typeof choice === 'object') return { tool: { name: choice.name } }
  return choice === 'required' ? { any: {} } : { auto: {} }
}

function outputConfig(output: Stated<NeutralOutput> | null, lenience: Lenience | undefined): JsonObject | null {
  if (output === null || output.value.form === 'text') return null
  if (output.value.form === 'json') {
    instructJson(lenience, output, 'Converse has JSON by a schema only: give a schema')
    return null
  }
  const { name, description, schema } = output.value
  const jsonSchema = {
    schema: JSON.stringify(schema),
    ...(name !== null && { name }),
    ...(description !== null && { description }),
  }
  return { textFormat: { type: 'json_schema', structure: { jsonSchema } } }
}

const tiers: ReadonlySet<unknown> = new Set(['priority', 'flex'])

function serviceTier({ extras }: NeutralRequest): JsonObject | null {
  const tier = extras.get('service_tier')
  if (tier === undefined || tier.value === 'auto' || tier.value === 'default') return null
  if (!tiers.has(tier.value)) throw unsupported(tier.at, 'Converse has the tiers priority, default and flex')
  return { type: tier.value }
}

/**
 * A value that Converse accepts as metadata. An account filters its own call logs by it; the answer does not depend on
 * it.
 */
const metadataValue = /^[a-zA-Z0-9\s:_@$#=/+,.-]{0,256}$/

function requestMetadata({ endUser }: NeutralRequest): JsonObject | null {
  return endUser !== null && metadataValue.test(endUser.value) ? { end_user: endUser.value } : null
}
