/**
 * Tools of a responses request as the functions that other providers have. A function stays as it is. A `namespace` is
 * taken apart: each of its tools becomes a function with a joined name. A `custom` tool, which takes text in place of
 * JSON, becomes a function with one string. `toolsByName` says for which tool each function stands, so that calls come
 * back in the form of the caller's own tools. A tool that no function can stand for is left out.
 */

import { Failure } from '../../../failure.ts'
import type { FieldPath, NeutralTool } from '../../neutral.ts'
import { isObject, type JsonObject, objectsOf, parseObject, textOf } from '../../reading/json-value.ts'
import { onlyMembers, statedBoolean, statedObject, statedString, stringAt } from '../../translation/field-readers.ts'
import { type Lenience, leaveOut, leaveOutTool } from '../../translation/lenience.ts'
import { unsupported } from '../../translation/translation-errors.ts'
import { offeredTools } from '../offered-tools.ts'

/** The caller's own tool that a function stands for. */
export interface StandIn {
  name: string
  namespace: string | null
  isCustom: boolean
}

const separator = '__'
/** The names that every provider takes. */
const plainName = /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/

const isCustom = ({ type }: JsonObject): boolean => type === 'custom'

export const functionName = (name: string, namespace: string | null): string =>
  namespace === null ? name : `${namespace}${separator}${name}`

/** The tools that functions stand for, by the function's name; null for a plain function and for a name of several. */
export function toolsByName(tools: readonly JsonObject[]): ReadonlyMap<string, StandIn | null> {
  const byName = new Map<string, StandIn | null>()
  const add = (tool: JsonObject, namespace: string | null) => {
    const name = textOf(tool.name)
    if (name === null || (!isCustom(tool) && tool.type !== 'function')) return
    const joined = functionName(name, namespace)
    const isOwn = namespace !== null || isCustom(tool)
    const standIn = isOwn ? { name, namespace, isCustom: isCustom(tool) } : null
    const isClear = !byName.has(joined) || Bun.deepEquals(byName.get(joined), standIn)
    byName.set(joined, isClear ? standIn : null)
  }
  for (const tool of tools) {
    if (tool.type === 'namespace') for (const inner of objectsOf(tool.tools)) add(inner, textOf(tool.name))
    else add(tool, null)
  }
  return byName
}

/** The names that the caller gave its tools, for the names of functions that an answer calls. */
export function callerNames(request: Readonly<JsonObject>, names: readonly string[]): readonly string[] {
  const tools = toolsByName(offeredTools(request))
  return names.map((name) => tools.get(name)?.name ?? name)
}

export type ReadTool = (tool: JsonObject, at: FieldPath) => readonly NeutralTool[]

/** Reads one tool of these; a namespace may become several functions, and a tool that is left out none. */
export function toolReader(tools: readonly JsonObject[], lenience: Lenience | undefined): ReadTool {
  const byName = toolsByName(tools)
  const read = (tool: JsonObject, at: FieldPath, namespace: string | null): NeutralTool[] => {
    const name = functionName(textOf(tool.name) ?? '', namespace)
    const standIn = byName.get(name)
    if (standIn === undefined || standIn === null || !plainName.test(name)) {
      leaveOutTool(lenience, tool, at, 'is a tool that other providers do not have')
      return []
    }
    return [{ ...(standIn.isCustom ? customOf(tool, at, lenience) : functionOf(tool, at, lenience)), name }]
  }
  return (tool, at) => {
    if (tool.type === 'function') return [functionOf(tool, at, lenience)]
    if (tool.type === 'namespace') {
      const inner = objectsOf(tool.tools).flatMap((each, index) => {
        const place = `${at}.tools.${index}`
        return unlessUnsupported(lenience, each, place, () => read(each, place, textOf(tool.name) ?? ''))
      })
      return describedFirst(inner, textOf(tool.description))
    }
    return unlessUnsupported(lenience, tool, at, () => read(tool, at, null))
  }
}

/** Leaves out a tool with a member that no other provider has. */
function unlessUnsupported(
  lenience: Lenience | undefined,
  tool: JsonObject,
  at: FieldPath,
  read: () => NeutralTool[],
): NeutralTool[] {
  try {
    return read()
  } catch (thrown) {
    if (lenience === undefined || !(thrown instanceof Failure)) throw thrown
    leaveOutTool(lenience, tool, at, 'has a member that other providers do not have')
    return []
  }
}

/** The description of a namespace stands before that of its first tool. */
const describedFirst = (tools: readonly NeutralTool[], words: string | null): readonly NeutralTool[] =>
  tools.map((tool, index) =>
    index > 0 || !words ? tool : { ...tool, description: [words, tool.description].filter(Boolean).join('\n\n') },
  )

const functionMembers = new Set(['type', 'name', 'description', 'parameters', 'strict', 'defer_loading'])

function functionOf(tool: JsonObject, at: FieldPath, lenience: Lenience | undefined): NeutralTool {
  noteDeferred(tool, at, lenience)
  onlyMembers(tool, at, functionMembers)
  return {
    name: stringAt(tool.name, `${at}.name`),
    description: statedString(tool.description, `${at}.description`)?.value ?? null,
    parameters: statedObject(tool.parameters, `${at}.parameters`)?.value ?? null,
    strict: statedBoolean(tool.strict, `${at}.strict`)?.value ?? null,
    at,
  }
}

function noteDeferred({ defer_loading: deferred }: JsonObject, at: FieldPath, lenience: Lenience | undefined): void {
  if (deferred === true) leaveOut(lenience, `${at}.defer_loading`, 'other providers search for no tools')
}

const customMembers = new Set(['type', 'name', 'description', 'format', 'defer_loading'])
/** The one argument of the function that stands for a custom tool. */
const inputMember = 'input'

function customOf(tool: JsonObject, at: FieldPath, lenience: Lenience | undefined): NeutralTool {
  noteDeferred(tool, at, lenience)
  onlyMembers(tool, at, customMembers)
  const description = statedString(tool.description, `${at}.description`)?.value ?? null
  const input = { type: 'string', description: 'The whole input of the tool, as it is, without JSON around it' }
  return {
    name: stringAt(tool.name, `${at}.name`),
    description: [description, formatWords(tool.format, `${at}.format`, lenience)].filter(Boolean).join('\n\n'),
    parameters: {
      type: 'object',
      properties: { [inputMember]: input },
      required: [inputMember],
      additionalProperties: false,
    },
    strict: null,
    at,
  }
}

/** Other providers do not hold the model to a grammar: the model is told it instead. */
function formatWords(given: unknown, at: FieldPath, lenience: Lenience | undefined): string | null {
  const format = statedObject(given, at)?.value ?? { type: 'text' }
  if (format.type === 'text') return null
  if (format.type !== 'grammar') throw unsupported(at, 'is a format that other providers do not have')
  if (lenience === undefined) throw unsupported(at, 'other providers do not hold an input to a grammar')
  lenience.note('replaced', at)
  const [syntax, definition] = [
    stringAt(format.syntax, `${at}.syntax`),
    stringAt(format.definition, `${at}.definition`),
  ]
  return `The input must match this ${syntax} grammar:\n\n${definition}`
}

/** The arguments of the function for the input of a custom tool. */
export const customArguments = (input: string): string => JSON.stringify({ [inputMember]: input })

/** The input of a custom tool in a call of its function; arguments of any other form are the input themselves. */
export function customInput(text: string): string {
  const input = parseObject(text)?.[inputMember]
  return typeof input === 'string' ? input : text
}

/** The name in `tool_choice` as the function's name; null for a choice of another kind. */
export function chosenFunction(choice: unknown): string | null {
  if (!isObject(choice) || (choice.type !== 'function' && !isCustom(choice))) return null
  return functionName(stringAt(choice.name, 'tool_choice.name'), textOf(choice.namespace))
}
