/**
 * Reads a responses request into the neutral form. `instructions`, and system and developer messages that begin the
 * input, are its instructions. Items of the assistant that follow each other (reasoning, a message, calls) are one
 * turn, and so are outputs of calls. An assistant message's `id`, `status` and `phase` say nothing to another provider.
 */

import { broughtCallSignature } from '../../chat/translation/reasoning.ts'
import type {
  FieldPath,
  NeutralPart,
  NeutralRequest,
  NeutralText,
  NeutralThought,
  NeutralTool,
  NeutralToolCall,
  NeutralToolResult,
  NeutralTurn,
} from '../../neutral.ts'
import { isGiven, isObject, type JsonObject, objectsOf, textOf } from '../../reading/json-value.ts'
import { withCacheAtEnd } from '../../translation/cache-marker.ts'
import {
  arrayAt,
  checkMembers,
  gathered,
  objectAt,
  onlyMembers,
  statedBoolean,
  statedObject,
  statedString,
  stringAt,
  toolsWith,
} from '../../translation/field-readers.ts'
import { type Lenience, leaveOut } from '../../translation/lenience.ts'
import { readEffort, readEndUser, readFormat, readHints } from '../../translation/openai-shared.ts'
import { numberReader } from '../../translation/settings.ts'
import { broughtOpaque, type Opaque } from '../../translation/signature.ts'
import { malformed, unsupported } from '../../translation/translation-errors.ts'
import { responsesMembers } from '../members.ts'
import { offeredTools } from '../offered-tools.ts'
import { inputParts } from './read-parts.ts'
import { chosenFunction, customArguments, functionName, type ReadTool, toolReader } from './tools.ts'

const readNumbers = numberReader(responsesMembers)

export function readResponsesRequest(body: Readonly<JsonObject>, lenience?: Lenience): NeutralRequest {
  checkMembers(body, responsesMembers, lenience)
  const before = statedString(body.instructions, 'instructions')
  const readTool = toolReader(offeredTools(body), lenience)
  const { instructions, turns, tools } = conversation(body.input, lenience, readTool)
  const text = statedObject(body.text, 'text')?.value ?? {}
  onlyMembers(text, 'text', textMembers)
  const extras = gathered(body, usualTiers.has(body.service_tier) ? [] : ['service_tier'])
  if (isGiven(text.verbosity)) extras.set('verbosity', { value: text.verbosity, at: 'text.verbosity' })
  const format = statedObject(text.format, 'text.format')
  return {
    model: stringAt(body.model, 'model'),
    instructions:
      before === null ? instructions : [{ kind: 'text', text: before.value, at: before.at }, ...instructions],
    turns: withCacheAtEnd(turns, body.cache_control),
    ...toolsWith(body.tools, readTool, {
      toolChoice: toolChoiceOf(body.tool_choice),
      parallelTools: statedBoolean(body.parallel_tool_calls, 'parallel_tool_calls'),
      tools,
    }),
    output: format === null ? null : readFormat(format.value, format.value, 'text.format'),
    reasoning: reasoningOf(body.reasoning, lenience),
    sampling: readNumbers(body),
    endUser: readEndUser(body),
    stream: body.stream === true,
    extras,
    hints: readHints(body),
  }
}

const textMembers = new Set(['format', 'verbosity'])
/** Tiers that change nothing: what a provider does unasked. */
const usualTiers: ReadonlySet<unknown> = new Set(['auto', 'default'])

const reasoningMembers = new Set(['effort', 'summary', 'generate_summary', 'context'])

/** However long the summary that is asked for: another provider shows its thoughts, or a summary of its own. */
function reasoningOf(given: unknown, lenience: Lenience | undefined): NeutralRequest['reasoning'] {
  const stated = statedObject(given, 'reasoning')
  if (stated === null) return null
  onlyMembers(stated.value, 'reasoning', reasoningMembers)
  const { effort, summary, generate_summary: older, context } = stated.value
  if (isGiven(context))
    leaveOut(lenience, 'reasoning.context', "it says which of a provider's own thoughts it reads again")
  const visible = isGiven(summary) || isGiven(older) ? true : null
  return { value: { effort: readEffort(effort, 'reasoning.effort'), budgetTokens: null, visible }, at: 'reasoning' }
}

function toolChoiceOf(choice: unknown): NeutralRequest['toolChoice'] {
  if (!isGiven(choice)) return null
  const at = 'tool_choice'
  if (choice === 'auto' || choice === 'none' || choice === 'required') return { value: choice, at }
  if (!isObject(choice)) throw malformed(at, 'auto, none, required or an object')
  const name = chosenFunction(choice)
  if (name === null) throw unsupported(at, 'chooses among tools in a way that other providers do not have')
  return { value: { name }, at }
}

/** What has been read of the input: the turn that the next item may still belong to is the last one. */
interface Conversation {
  instructions: NeutralText[]
  turns: NeutralTurn[]
  /** The parts of the last turn, where it is the assistant's or of results. */
  open: { role: 'assistant' | 'tool'; parts: NeutralPart[] } | null
  calls: Map<string, string>
  /** Those that items of the input offer. */
  tools: NeutralTool[]
  lenience: Lenience | undefined
  readTool: ReadTool
}

function conversation(input: unknown, lenience: Lenience | undefined, readTool: ReadTool): Conversation {
  const read: Conversation = {
    instructions: [],
    turns: [],
    open: null,
    calls: new Map(),
    tools: [],
    lenience,
    readTool,
  }
  if (typeof input === 'string') {
    read.turns.push({ role: 'user', parts: [{ kind: 'text', text: input, at: 'input' }], at: 'input' })
    return read
  }
  for (const [index, item] of arrayAt(input, 'input').entries()) {
    readItem(read, objectAt(item, `input.${index}`), `input.${index}`)
  }
  return read
}

/** A label that Codex puts on items, to track its turns. */
const label = 'internal_chat_message_metadata_passthrough'

function readItem(read: Conversation, { [label]: labelled, ...item }: JsonObject, at: FieldPath): void {
  if (isGiven(labelled)) leaveOut(read.lenience, `${at}.${label}`, 'a client tracks its turns with it')
  const type = item.type ?? 'message'
  if (type === 'message') readMessage(read, item, at)
  else if (type === 'reasoning') add(read, 'assistant', thoughtOf(item, at), at)
  else if (type === 'function_call' || type === 'custom_tool_call') {
    const call = callOf(item, at)
    read.calls.set(call.id, call.name)
    add(read, 'assistant', [call], at)
  } else if (type === 'function_call_output' || type === 'custom_tool_call_output') {
    add(read, 'tool', [resultOf(item, at, read.calls)], at)
  } else if (type === 'additional_tools') readTools(read, item, at)
  else if (type === 'web_search_call')
    leaveOut(read.lenience, `${at}.web_search_call`, 'other providers have no searches of their own')
  else throw unsupported(`${at}.type`, 'is an item that other providers do not have')
}

const toolItemMembers = new Set(['type', 'id', 'role', 'tools'])

function readTools({ tools, readTool }: Conversation, item: JsonObject, at: FieldPath): void {
  onlyMembers(item, at, toolItemMembers)
  for (const [index, tool] of arrayAt(item.tools, `${at}.tools`).entries()) {
    const place = `${at}.tools.${index}`
    tools.push(...readTool(objectAt(tool, place), place))
  }
}

/** Adds to the last turn where it is of this role, and else begins one. */
function add(read: Conversation, role: 'assistant' | 'tool', parts: readonly NeutralPart[], at: FieldPath): void {
  if (read.open?.role !== role) {
    read.open = { role, parts: [] }
    read.turns.push({ role, parts: read.open.parts, at })
  }
  read.open.parts.push(...parts)
}

const messageMembers = new Set(['type', 'role', 'content', 'id', 'status', 'phase'])

function readMessage(read: Conversation, item: JsonObject, at: FieldPath): void {
  onlyMembers(item, at, messageMembers)
  const parts = inputParts(item.content, `${at}.content`)
  if (item.role === 'assistant') {
    add(read, 'assistant', parts, at)
    return
  }
  read.open = null
  if (item.role === 'user') read.turns.push({ role: 'user', parts, at })
  else if (item.role !== 'system' && item.role !== 'developer') {
    throw unsupported(`${at}.role`, 'is a role that other providers do not have')
  } else {
    const texts = parts.map((part) => {
      if (part.kind !== 'text') throw unsupported(part.at, 'is no text, and other providers take nothing else there')
      return part
    })
    if (read.turns.length === 0) read.instructions.push(...texts)
    else read.turns.push({ role: 'system', parts: texts, at })
  }
}

const reasoningItemMembers = new Set(['type', 'id', 'summary', 'content', 'encrypted_content', 'status'])

function thoughtOf(item: JsonObject, at: FieldPath): NeutralThought[] {
  onlyMembers(item, at, reasoningItemMembers)
  const thought = readThought(item, at, broughtOpaque)
  return thought === null ? [] : [thought]
}

/** A reasoning item, a request's or an answer's; null where it holds nothing. */
export function readThought(
  item: JsonObject,
  at: FieldPath,
  read: (text: string | null, own: 'responses', redacted: boolean) => Opaque,
): NeutralThought | null {
  const said = objectsOf(item.summary).length > 0 ? item.summary : item.content
  const text = objectsOf(said).flatMap((part) => textOf(part.text) || [])
  const encrypted = textOf(item.encrypted_content)
  if (encrypted === null && text.length === 0) return null
  return { kind: 'thought', text: text.join(betweenSummaries), ...read(encrypted, 'responses', false), at }
}

export const betweenSummaries = '\n\n'

const anyCall = ['type', 'id', 'call_id', 'name', 'namespace', 'status', 'extra_content']
const callMembers = new Set([...anyCall, 'arguments'])
const customCallMembers = new Set([...anyCall, 'input'])

function callOf(item: JsonObject, at: FieldPath): NeutralToolCall {
  const isCustom = item.type === 'custom_tool_call'
  onlyMembers(item, at, isCustom ? customCallMembers : callMembers)
  const namespace = statedString(item.namespace, `${at}.namespace`)?.value ?? null
  return {
    kind: 'tool_call',
    id: stringAt(item.call_id, `${at}.call_id`),
    name: functionName(stringAt(item.name, `${at}.name`), namespace),
    arguments: isCustom
      ? customArguments(stringAt(item.input, `${at}.input`))
      : stringAt(item.arguments, `${at}.arguments`),
    ...broughtCallSignature(item),
    at,
  }
}

const outputMembers = new Set(['type', 'id', 'call_id', 'name', 'namespace', 'output', 'status'])

function resultOf(item: JsonObject, at: FieldPath, calls: ReadonlyMap<string, string>): NeutralToolResult {
  onlyMembers(item, at, outputMembers)
  const callId = stringAt(item.call_id, `${at}.call_id`)
  const parts = inputParts(item.output, `${at}.output`).filter((part) => part.kind !== 'refusal')
  return { kind: 'tool_result', callId, name: calls.get(callId) ?? null, parts, isError: false, at }
}
