/**
 * Reads a chat completion request into the neutral form. System and developer messages before the first other message
 * are its instructions; consecutive tool messages are one turn. Members that clients send back from an answer
 * (`annotations`, a null `refusal`) are accepted unchanged.
 *
 * Thoughts come back in `reasoning_details`, which hold their signatures (`reasoning.ts`), or otherwise in plain text.
 */

import type {
  FieldPath,
  NeutralPart,
  NeutralRequest,
  NeutralText,
  NeutralTool,
  NeutralToolCall,
  NeutralToolResult,
  NeutralTurn,
} from '../../neutral.ts'
import { isGiven, isObject, type JsonObject, textOf } from '../../reading/json-value.ts'
import { cacheOf, withCacheAtEnd, withCacheOf } from '../../translation/cache-marker.ts'
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
import { type Lenience, leaveOutTool } from '../../translation/lenience.ts'
import { readEffort, readEndUser, readFormat, readHints } from '../../translation/openai-shared.ts'
import { numberReader } from '../../translation/settings.ts'
import { broughtOpaque } from '../../translation/signature.ts'
import { malformed, unsupported } from '../../translation/translation-errors.ts'
import { chatMembers, spokenNames } from '../members.ts'
import { annotationsIn } from './annotations.ts'
import { contentParts, isThinkingPart, textsOf } from './read-parts.ts'
import { broughtCallSignature, readThoughts } from './reasoning.ts'
import { wordsIn } from './spoken-parts.ts'

const readNumbers = numberReader(chatMembers)

export function readChatRequest(body: Readonly<JsonObject>, lenience?: Lenience): NeutralRequest {
  checkMembers(body, chatMembers, lenience)
  const messages = arrayAt(body.messages, 'messages')
  const { instructions, turns } = conversation(messages)
  const effort = readEffort(body.reasoning_effort, 'reasoning_effort')
  const extras = gathered(body, ['verbosity'])
  if (!usualTiers.has(body.service_tier)) gathered(body, ['service_tier'], extras)
  return {
    model: stringAt(body.model, 'model'),
    instructions,
    turns: withCacheAtEnd(turns, body.cache_control),
    ...toolsWith(body.tools, (tool, at) => toolOf(tool, at, lenience), {
      toolChoice: toolChoiceOf(body.tool_choice),
      parallelTools: statedBoolean(body.parallel_tool_calls, 'parallel_tool_calls'),
    }),
    output: outputOf(body.response_format),
    reasoning:
      effort === null ? null : { value: { effort, budgetTokens: null, visible: null }, at: 'reasoning_effort' },
    sampling: { ...readNumbers(body), ...stopOf(body.stop) },
    endUser: readEndUser(body),
    stream: body.stream === true,
    extras,
    hints: readHints(body),
  }
}

/** Tiers that change nothing: the provider's default behaviour. */
const usualTiers: ReadonlySet<unknown> = new Set(['auto', 'default'])

function stopOf(stop: unknown): Pick<NeutralRequest['sampling'], 'stop'> {
  if (!isGiven(stop)) return {}
  const value = typeof stop === 'string' ? [stop] : arrayAt(stop, 'stop').map((each, i) => stringAt(each, `stop.${i}`))
  return { stop: { value, at: 'stop' } }
}

function outputOf(format: unknown): NeutralRequest['output'] {
  const stated = statedObject(format, 'response_format')
  return stated === null ? null : readFormat(stated.value, stated.value.json_schema, 'response_format')
}

const toolMembers = new Set(['type', 'function', 'cache_control'])
const functionMembers = new Set(['name', 'description', 'parameters', 'strict'])

function toolOf(tool: JsonObject, at: FieldPath, lenience: Lenience | undefined): NeutralTool[] {
  if (tool.type !== 'function') {
    leaveOutTool(lenience, tool, at, 'is a tool that other providers do not have')
    return []
  }
  onlyMembers(tool, at, toolMembers)
  const called = objectAt(tool.function, `${at}.function`)
  onlyMembers(called, `${at}.function`, functionMembers)
  return [
    {
      name: stringAt(called.name, `${at}.function.name`),
      description: statedString(called.description, `${at}.function.description`)?.value ?? null,
      parameters: statedObject(called.parameters, `${at}.function.parameters`)?.value ?? null,
      strict: statedBoolean(called.strict, `${at}.function.strict`)?.value ?? null,
      at,
      ...cacheOf(tool.cache_control, `${at}.cache_control`),
    },
  ]
}

function toolChoiceOf(choice: unknown): NeutralRequest['toolChoice'] {
  if (!isGiven(choice)) return null
  const at = 'tool_choice'
  if (choice === 'auto' || choice === 'none' || choice === 'required') return { value: choice, at }
  if (!isObject(choice)) throw malformed(at, 'auto, none, required or an object')
  if (choice.type !== 'function') throw unsupported(at, 'chooses among tools in a way that other providers do not have')
  const name = stringAt(objectAt(choice.function, `${at}.function`).name, `${at}.function.name`)
  return { value: { name }, at }
}

const isInstruction = (role: unknown): boolean => role === 'system' || role === 'developer'

function conversation(messages: readonly unknown[]): { instructions: NeutralText[]; turns: NeutralTurn[] } {
  const instructions: NeutralText[] = []
  const turns: NeutralTurn[] = []
  const calls = new Map<string, string>()
  let results: NeutralToolResult[] | null = null
  for (const [index, given] of messages.entries()) {
    const at = `messages.${index}`
    const message = objectAt(given, at)
    if (message.role === 'tool') {
      if (results === null) {
        results = []
        turns.push({ role: 'tool', parts: results, at })
      }
      results.push(toolResult(message, at, calls))
      continue
    }
    results = null
    if (isInstruction(message.role) && turns.length === 0 && !isGiven(message.name)) {
      instructions.push(...systemTexts(message, at))
    } else turns.push(turnOf(message, at, calls))
  }
  return { instructions, turns }
}

const plainMembers = new Set(['role', 'content', 'name', 'cache_control'])

function systemTexts(message: JsonObject, at: FieldPath): NeutralText[] {
  onlyMembers(message, at, plainMembers)
  return withCacheOf(textsOf(message.content, `${at}.content`), message, at)
}

function turnOf(message: JsonObject, at: FieldPath, calls: Map<string, string>): NeutralTurn {
  const name = statedString(message.name, `${at}.name`)
  const named = name === null ? {} : { name }
  if (isInstruction(message.role)) return { role: 'system', parts: systemTexts(message, at), ...named, at }
  if (message.role === 'assistant')
    return { role: 'assistant', parts: withCacheOf(assistantParts(message, at, calls), message, at), ...named, at }
  if (message.role !== 'user') throw unsupported(`${at}.role`, 'is a role that other providers do not have')
  onlyMembers(message, at, plainMembers)
  const parts = contentParts(message.content, `${at}.content`)
  return { role: 'user', parts: withCacheOf(parts, message, at), ...named, at }
}

const assistantMembers = new Set([
  ...spokenNames,
  ...['role', 'name', 'tool_calls', 'annotations', 'reasoning_details', 'cache_control'],
])

function assistantParts(message: JsonObject, at: FieldPath, calls: Map<string, string>): NeutralPart[] {
  onlyMembers(message, at, assistantMembers)
  const parts: NeutralPart[] = [...readThoughts(message, at, broughtOpaque)]
  const { content } = message
  for (const text of Array.isArray(content)
    ? content.filter(isThinkingPart).map(({ thinking }) => wordsIn(thinking))
    : []) {
    if (text !== null) parts.push({ kind: 'thought', text, ...broughtOpaque(null, 'chat', false), at: `${at}.content` })
  }
  const rest = Array.isArray(content) ? content.filter((part) => !isThinkingPart(part)) : content
  const spoken = isGiven(rest) && rest !== '' ? contentParts(rest, `${at}.content`) : []
  const citations = annotationsIn(message.annotations)
  const cited = spoken.findIndex(({ kind }) => kind === 'text')
  for (const [index, part] of spoken.entries()) {
    parts.push(index === cited && part.kind === 'text' && citations.length > 0 ? { ...part, citations } : part)
  }
  const refusal = textOf(message.refusal)
  if (refusal !== null && refusal !== '') parts.push({ kind: 'refusal', text: refusal, at: `${at}.refusal` })
  if (!isGiven(message.tool_calls)) return parts
  for (const [index, call] of arrayAt(message.tool_calls, `${at}.tool_calls`).entries()) {
    const read = toolCall(objectAt(call, `${at}.tool_calls.${index}`), `${at}.tool_calls.${index}`)
    calls.set(read.id, read.name)
    parts.push(read)
  }
  return parts
}

const callMembers = new Set(['id', 'type', 'function', 'extra_content', 'index'])
const calledMembers = new Set(['name', 'arguments'])

function toolCall(call: JsonObject, at: FieldPath): NeutralToolCall {
  if (isGiven(call.type) && call.type !== 'function') {
    throw unsupported(`${at}.type`, 'is a call of a tool that other providers do not have')
  }
  onlyMembers(call, at, callMembers)
  const called = objectAt(call.function, `${at}.function`)
  onlyMembers(called, `${at}.function`, calledMembers)
  return {
    kind: 'tool_call',
    id: stringAt(call.id, `${at}.id`),
    name: stringAt(called.name, `${at}.function.name`),
    arguments: stringAt(called.arguments ?? '', `${at}.function.arguments`),
    ...broughtCallSignature(call),
    at,
  }
}

const resultMembers = new Set(['role', 'content', 'tool_call_id', 'name', 'cache_control'])

function toolResult(message: JsonObject, at: FieldPath, calls: ReadonlyMap<string, string>): NeutralToolResult {
  onlyMembers(message, at, resultMembers)
  const callId = stringAt(message.tool_call_id, `${at}.tool_call_id`)
  const parts = contentParts(message.content, `${at}.content`).filter((part) => part.kind !== 'refusal')
  const name = calls.get(callId) ?? textOf(message.name)
  const cache = cacheOf(message.cache_control, `${at}.cache_control`)
  return { kind: 'tool_result', callId, name, parts, isError: false, at, ...cache }
}
