/**
 * A request that a caller of the messages language makes, read into the neutral form. Every member has a line in
 * `messages-features.ts`; one that has none is refused. A user's turn with tool results becomes a turn of `tool` and one
 * of `user`, in the order in which they stand.
 */
import { isGiven, isObject, type JsonObject, textOf } from '../dialects/json-value.ts'
import { messagesMembers } from './messages-features.ts'
import { cacheOf, partsOf, textsOf } from './messages-parts.ts'
import type {
  FieldPath,
  NeutralOutput,
  NeutralPart,
  NeutralReasoning,
  NeutralRequest,
  NeutralTool,
  NeutralTurn,
  Stated,
} from './neutral.ts'
import { unsupported } from './unsupported.ts'

export function readMessagesRequest(body: Readonly<JsonObject>): NeutralRequest {
  for (const [member, value] of Object.entries(body)) checkMember(member, value)
  const turns = namedResults(turnsOf(body.messages))
  const choice = isObject(body.tool_choice) ? body.tool_choice : null
  const userId = isObject(body.metadata) ? textOf(body.metadata.user_id) : null
  return {
    model: textOf(body.model) ?? '',
    instructions: isGiven(body.system) ? textsOf(body.system, 'system') : [],
    turns: markedAtEnd(turns, body.cache_control),
    tools: Array.isArray(body.tools) ? body.tools.map((tool, index) => toolOf(tool, `tools.${index}`)) : [],
    toolChoice: toolChoiceOf(choice),
    parallelTools: parallelOf(choice),
    output: outputOf(body),
    reasoning: reasoningOf(body),
    sampling: samplingOf(body),
    endUser: userId === null ? null : { value: userId, at: 'metadata.user_id' },
    stream: body.stream === true,
    extras: extrasOf(body.service_tier),
  }
}

function checkMember(member: string, value: unknown): void {
  const becomes = Object.hasOwn(messagesMembers, member) ? messagesMembers[member] : undefined
  if (becomes === undefined) throw unsupported(member, 'No other provider has a member like this one')
  if (becomes === 'carried' || !('refused' in becomes) || !isGiven(value)) return
  if (becomes.onlyAs?.includes(value)) return
  throw unsupported(member, becomes.refused)
}

function turnsOf(messages: unknown): NeutralTurn[] {
  if (!Array.isArray(messages)) throw unsupported('messages', 'messages must be an array')
  return messages.flatMap((message: unknown, index) => {
    const at = `messages.${index}`
    if (!isObject(message)) throw unsupported(at, 'A message must be an object')
    const { role, content } = message
    if (role === 'assistant') return { role, parts: partsOf(content, `${at}.content`), at }
    if (role === 'system') return { role, parts: textsOf(content, `${at}.content`), at }
    if (role === 'user') return userTurns(partsOf(content, `${at}.content`), at)
    throw unsupported(`${at}.role`, 'A role is user, assistant or system')
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

/** `cache_control` of the whole request is a marker on its last block. */
function markedAtEnd(turns: readonly NeutralTurn[], cacheControl: unknown): readonly NeutralTurn[] {
  const cache = cacheOf(cacheControl, 'cache_control')
  const [turn, part] = [turns.at(-1), turns.at(-1)?.parts.at(-1)]
  if (cache === undefined || turn === undefined || part === undefined || part.cache !== undefined) return turns
  return [...turns.slice(0, -1), { ...turn, parts: [...turn.parts.slice(0, -1), { ...part, cache }] }]
}

const toolMembers: ReadonlySet<string> = new Set([
  ...['type', 'name', 'description', 'input_schema', 'strict', 'cache_control'],
  // How finely the arguments are streamed changes nothing of them.
  'eager_input_streaming',
])

function toolOf(tool: unknown, at: FieldPath): NeutralTool {
  if (!isObject(tool) || typeof tool.name !== 'string') throw unsupported(at, 'A tool needs a name')
  if (isGiven(tool.type) && tool.type !== 'custom') {
    throw unsupported(`${at}.type`, 'Only its own provider has a tool of this type: define it with an input_schema')
  }
  for (const [member, value] of Object.entries(tool)) {
    if (toolMembers.has(member) || !isGiven(value) || value === false) continue
    if (member === 'allowed_callers' && Array.isArray(value) && value.every((caller) => caller === 'direct')) continue
    throw unsupported(`${at}.${member}`, 'No other provider has a member like this one')
  }
  const cache = cacheOf(tool.cache_control, `${at}.cache_control`)
  return {
    name: tool.name,
    description: textOf(tool.description),
    parameters: isObject(tool.input_schema) ? tool.input_schema : null,
    strict: typeof tool.strict === 'boolean' ? tool.strict : null,
    ...(cache !== undefined && { cache }),
    at,
  }
}

function toolChoiceOf(choice: JsonObject | null): NeutralRequest['toolChoice'] {
  if (choice === null) return null
  const at = 'tool_choice'
  if (choice.type === 'auto' || choice.type === 'none') return { value: choice.type, at }
  if (choice.type === 'any') return { value: 'required', at }
  if (choice.type === 'tool' && typeof choice.name === 'string') return { value: { name: choice.name }, at }
  throw unsupported('tool_choice.type', 'A tool choice is auto, any, none, or tool with a name')
}

function parallelOf(choice: JsonObject | null): Stated<boolean> | null {
  const disabled = choice?.disable_parallel_tool_use
  return typeof disabled === 'boolean' ? { value: !disabled, at: 'tool_choice.disable_parallel_tool_use' } : null
}

/** `output_format` is where the form stood before `output_config` had it. */
function outputOf({ output_config: config, output_format: former }: JsonObject): Stated<NeutralOutput> | null {
  const current = isObject(config) ? config.format : null
  const [format, at] = isGiven(current) ? [current, 'output_config.format'] : [former, 'output_format']
  if (!isGiven(format)) return null
  if (!isObject(format) || format.type !== 'json_schema' || !isObject(format.schema)) {
    throw unsupported(at, 'The format must be of type json_schema, with a schema')
  }
  const { schema } = format
  return { value: { form: 'schema', name: null, description: null, schema, strict: true }, at }
}

const efforts = ['low', 'medium', 'high', 'xhigh'] as const

function reasoningOf({ output_config: config, thinking }: JsonObject): Stated<NeutralReasoning> | null {
  const said = isObject(config) ? (config.effort ?? null) : null
  const effort = efforts.find((known) => known === said) ?? null
  if (said !== null && effort === null) {
    throw unsupported('output_config.effort', 'Other providers know the efforts low, medium, high and xhigh')
  }
  if (!isObject(thinking)) {
    return effort === null ? null : { value: { effort, budgetTokens: null, visible: null }, at: 'output_config.effort' }
  }
  const visible = thinking.display === 'summarized' ? true : thinking.display === 'omitted' ? false : null
  if (thinking.type === 'disabled') {
    if (effort !== null) throw unsupported('output_config.effort', 'Without thinking, no other provider has an effort')
    return { value: { effort: 'none', budgetTokens: null, visible: null }, at: 'thinking' }
  }
  if (thinking.type === 'adaptive') return { value: { effort, budgetTokens: null, visible }, at: 'thinking' }
  const budget = thinking.budget_tokens
  if (thinking.type === 'enabled' && typeof budget === 'number') {
    return { value: { effort, budgetTokens: budget, visible }, at: 'thinking' }
  }
  throw unsupported('thinking.type', 'Thinking is disabled, adaptive, or enabled with a budget')
}

function samplingOf(body: Readonly<JsonObject>): NeutralRequest['sampling'] {
  const number = (member: string): Stated<number> | undefined => {
    const value = body[member]
    if (!isGiven(value)) return undefined
    if (typeof value !== 'number') throw unsupported(member, 'This must be a number')
    return { value, at: member }
  }
  const [maxOutputTokens, temperature, topP, topK] = ['max_tokens', 'temperature', 'top_p', 'top_k'].map(number)
  const stop = Array.isArray(body.stop_sequences) ? body.stop_sequences.filter((each) => typeof each === 'string') : []
  return {
    ...(maxOutputTokens !== undefined && { maxOutputTokens }),
    ...(temperature !== undefined && { temperature }),
    ...(topP !== undefined && { topP }),
    ...(topK !== undefined && { topK }),
    ...(stop.length > 0 && { stop: { value: stop, at: 'stop_sequences' } }),
  }
}

/** `standard_only` is what others call `default`; `auto` is what holds anyway. */
function extrasOf(tier: unknown): ReadonlyMap<string, Stated<unknown>> {
  if (!isGiven(tier) || tier === 'auto') return new Map()
  return new Map([['service_tier', { value: tier === 'standard_only' ? 'default' : tier, at: 'service_tier' }]])
}
