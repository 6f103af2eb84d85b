/**
 * Reads a caller's messages request into the neutral form. Every member has a row in `members.ts`; a member without
 * one is refused. A user's turn with tool results becomes a turn of `tool` and one of `user`, in their order.
 */

import {
  type Effort,
  efforts,
  type FieldPath,
  type NeutralOutput,
  type NeutralPart,
  type NeutralReasoning,
  type NeutralRequest,
  type NeutralTool,
  type NeutralTurn,
  type Stated,
} from '../../neutral.ts'
import { isGiven, isObject, type JsonObject } from '../../reading/json-value.ts'
import { cacheOf, withCacheAtEnd } from '../../translation/cache-marker.ts'
import {
  arrayAt,
  checkMembers,
  objectAt,
  onlyMembers,
  statedBoolean,
  statedObject,
  statedString,
  stringAt,
  toolsWith,
} from '../../translation/field-readers.ts'
import { type Lenience, leaveOut, leaveOutTool } from '../../translation/lenience.ts'
import { numberReader } from '../../translation/settings.ts'
import { malformed, unsupported } from '../../translation/translation-errors.ts'
import { messagesMembers } from '../members.ts'
import { partsOf, textsOf } from './read-parts.ts'

const readNumbers = numberReader(messagesMembers)

export function readMessagesRequest(body: Readonly<JsonObject>, lenience?: Lenience): NeutralRequest {
  checkMembers(body, messagesMembers, lenience)
  const turns = namedResults(turnsOf(body.messages, lenience))
  const choice = statedObject(body.tool_choice, 'tool_choice')?.value ?? null
  const metadata = statedObject(body.metadata, 'metadata')?.value ?? {}
  onlyMembers(metadata, 'metadata', metadataMembers)
  const config = statedObject(body.output_config, 'output_config')?.value ?? {}
  onlyMembers(config, 'output_config', configMembers)
  return {
    model: stringAt(body.model, 'model'),
    instructions: isGiven(body.system) ? textsOf(body.system, 'system') : [],
    turns: withCacheAtEnd(turns, body.cache_control),
    ...toolsWith(body.tools, (tool, at) => toolOf(tool, at, lenience), {
      toolChoice: choice === null ? null : toolChoiceOf(choice),
      parallelTools: choice === null ? null : parallelOf(choice),
    }),
    output: outputOf(config.format, body.output_format),
    reasoning: reasoningOf(config.effort, statedObject(body.thinking, 'thinking')?.value ?? null),
    sampling: samplingOf(body),
    endUser: statedString(metadata.user_id, 'metadata.user_id'),
    stream: body.stream === true,
    extras: extrasOf(body.service_tier),
  }
}

const metadataMembers = new Set(['user_id'])
const configMembers = new Set(['effort', 'format'])
const messageMembers = new Set(['role', 'content', 'output_config'])

function turnsOf(messages: unknown, lenience: Lenience | undefined): NeutralTurn[] {
  return arrayAt(messages, 'messages').flatMap((given, index) => {
    const at = `messages.${index}`
    const message = objectAt(given, at)
    onlyMembers(message, at, messageMembers)
    const { role, content, output_config: config } = message
    if (isGiven(config)) leaveOut(lenience, `${at}.output_config`, 'other providers have one effort for a conversation')
    if (role === 'assistant') return { role, parts: partsOf(content, `${at}.content`), at }
    if (role === 'system') return { role, parts: textsOf(content, `${at}.content`), at }
    if (role === 'user') return userTurns(partsOf(content, `${at}.content`), at)
    throw malformed(`${at}.role`, 'user, assistant or system')
  })
}

function userTurns(parts: readonly NeutralPart[], at: FieldPath): NeutralTurn[] {
  const turns: { role: 'user' | 'tool'; parts: NeutralPart[]; at: FieldPath }[] = []
  for (const part of parts) {
    const role = part.kind === 'tool_result' ? 'tool' : 'user'
    const last = turns.at(-1)
    if (last?.role === role) last.parts.push(part)
    else turns.push({ role, parts: [part], at })
  }
  return turns
}

/** Tool results with the names of their calls. */
function namedResults(turns: readonly NeutralTurn[]): NeutralTurn[] {
  const names = new Map<string, string>()
  return turns.map((turn) => {
    for (const part of turn.parts) if (part.kind === 'tool_call') names.set(part.id, part.name)
    if (turn.role !== 'tool') return turn
    const parts = turn.parts.map((part) =>
      part.kind === 'tool_result' ? { ...part, name: names.get(part.callId) ?? null } : part,
    )
    return { ...turn, parts }
  })
}

const toolMembers = new Set([
  ...['type', 'name', 'description', 'input_schema', 'strict', 'cache_control', 'allowed_callers', 'defer_loading'],
  // The granularity of streamed arguments does not change the arguments.
  'eager_input_streaming',
])

function toolOf(tool: JsonObject, at: FieldPath, lenience: Lenience | undefined): NeutralTool[] {
  if (isGiven(tool.type) && tool.type !== 'custom') {
    leaveOutTool(lenience, tool, at, 'only its own provider has a tool of this type: define it with an input_schema')
    return []
  }
  onlyMembers(tool, at, toolMembers)
  const { allowed_callers: callers, defer_loading: deferred } = tool
  if (isGiven(callers) && !Bun.deepEquals(callers, ['direct'])) {
    throw unsupported(`${at}.allowed_callers`, 'other providers have the model itself call tools')
  }
  if (deferred === true) leaveOut(lenience, `${at}.defer_loading`, 'other providers search for no tools')
  return [
    {
      name: stringAt(tool.name, `${at}.name`),
      description: statedString(tool.description, `${at}.description`)?.value ?? null,
      parameters: statedObject(tool.input_schema, `${at}.input_schema`)?.value ?? null,
      strict: statedBoolean(tool.strict, `${at}.strict`)?.value ?? null,
      ...cacheOf(tool.cache_control, `${at}.cache_control`),
      at,
    },
  ]
}

const choiceMembers = new Set(['type', 'name', 'disable_parallel_tool_use'])

function toolChoiceOf(choice: JsonObject): NeutralRequest['toolChoice'] {
  const at = 'tool_choice'
  onlyMembers(choice, at, choiceMembers)
  const { type, name } = choice
  if (type === 'auto' || type === 'none') return { value: type, at }
  if (type === 'any') return { value: 'required', at }
  if (type === 'tool') return { value: { name: stringAt(name, `${at}.name`) }, at }
  throw malformed(`${at}.type`, 'auto, any, none or tool')
}

function parallelOf({ disable_parallel_tool_use: disabled }: JsonObject): Stated<boolean> | null {
  const stated = statedBoolean(disabled, 'tool_choice.disable_parallel_tool_use')
  return stated === null ? null : { ...stated, value: !stated.value }
}

/** `output_format` is the older name of the form in `output_config`. */
function outputOf(current: unknown, former: unknown): Stated<NeutralOutput> | null {
  const [given, at] = isGiven(current) ? [current, 'output_config.format'] : [former, 'output_format']
  if (!isGiven(given)) return null
  const { type, schema } = objectAt(given, at)
  if (type !== 'json_schema' || !isObject(schema)) throw malformed(at, 'of type json_schema, with a schema')
  return { value: { form: 'schema', name: null, description: null, schema, strict: true }, at }
}

function effortOf(given: unknown): Stated<Effort> | null {
  const stated = statedString(given, 'output_config.effort')
  if (stated === null) return null
  const value = efforts.find((known) => known === stated.value)
  if (value === undefined) throw malformed(stated.at, 'low, medium, high, xhigh or max')
  return { ...stated, value }
}

function reasoningOf(givenEffort: unknown, thinking: JsonObject | null): Stated<NeutralReasoning> | null {
  const stated = effortOf(givenEffort)
  const effort = stated?.value ?? null
  if (thinking === null) {
    return stated === null ? null : { value: { effort, budgetTokens: null, visible: null }, at: stated.at }
  }
  const { type, display, budget_tokens: budgetTokens } = thinking
  const visible = display === 'summarized' ? true : display === 'omitted' ? false : null
  if (type === 'disabled') {
    if (stated !== null) throw unsupported(stated.at, 'without thinking, no other provider has an effort')
    return { value: { effort: 'none', budgetTokens: 0, visible: null }, at: 'thinking' }
  }
  if (type === 'adaptive') return { value: { effort, budgetTokens: null, visible }, at: 'thinking' }
  if (type === 'enabled' && typeof budgetTokens === 'number') {
    return { value: { effort, budgetTokens, visible }, at: 'thinking' }
  }
  throw unsupported('thinking.type', 'thinking is disabled, adaptive, or enabled with a budget')
}

function samplingOf(body: Readonly<JsonObject>): NeutralRequest['sampling'] {
  const stop = isGiven(body.stop_sequences) ? arrayAt(body.stop_sequences, 'stop_sequences') : []
  const value = stop.map((each, index) => stringAt(each, `stop_sequences.${index}`))
  const numbers = readNumbers(body)
  return value.length === 0 ? numbers : { ...numbers, stop: { value, at: 'stop_sequences' } }
}

/** `standard_only` is `default` in other languages; `auto` is the default behaviour. */
function extrasOf(tier: unknown): ReadonlyMap<string, Stated<unknown>> {
  if (!isGiven(tier) || tier === 'auto') return new Map()
  return new Map([['service_tier', { value: tier === 'standard_only' ? 'default' : tier, at: 'service_tier' }]])
}
