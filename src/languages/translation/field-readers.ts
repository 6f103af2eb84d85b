/**
 * Reads the members of a caller's body so that none is dropped unnoticed: a member is read, or known to have no effect,
 * or left out with a note, or refused by its name. A null member counts as left out.
 */

import { settingOf } from '../../lib/json/exact-json.ts'
import type { MemberTable } from '../member-table.ts'
import type { FieldPath, NeutralRequest, NeutralTool, Stated } from '../neutral.ts'
import { isGiven, isObject, type JsonObject } from '../reading/json-value.ts'
import { type Lenience, leaveOut } from './lenience.ts'
import { malformed, unsupported } from './translation-errors.ts'

/** Refuses the members that the table refuses, and unknown ones; leaves out those that a lenient translation may. */
export function checkMembers(body: Readonly<JsonObject>, table: MemberTable, lenience?: Lenience): void {
  for (const name in body) {
    const value = body[name]
    if (!isGiven(value)) continue
    const translation = Object.hasOwn(table, name) ? table[name]?.translation : undefined
    if (translation === undefined) throw unsupported(name, unknownMember)
    if (translation === 'carried' || 'hint' in translation || 'withoutEffect' in translation) continue
    if (translation.onlyAs?.some((only) => Bun.deepEquals(only, value))) continue
    if ('refused' in translation) throw unsupported(name, translation.refused)
    const { leftOut, where, otherwise = leftOut } = translation
    if (where !== undefined && !where(value)) throw unsupported(name, otherwise)
    leaveOut(lenience, name, strictly)
  }
}

const strictly = 'this model is translated strictly, and its provider has no member like this one'
const unknownMember = "is not known to have a meaning for this model's provider"

/** Refuses the members of an inner object that are not among these. */
export function onlyMembers(object: Readonly<JsonObject>, at: FieldPath, known: ReadonlySet<string>): void {
  for (const name in object) {
    if (!known.has(name) && isGiven(object[name])) throw unsupported(`${at}.${name}`, unknownMember)
  }
}

export function objectAt(value: unknown, at: FieldPath): JsonObject {
  if (!isObject(value)) throw malformed(at, 'an object')
  return value
}

export function arrayAt(value: unknown, at: FieldPath): readonly unknown[] {
  if (!Array.isArray(value)) throw malformed(at, 'an array')
  return value
}

export function stringAt(value: unknown, at: FieldPath): string {
  if (typeof value !== 'string') throw malformed(at, 'a string')
  return value
}

const typed =
  <Value>(is: (value: unknown) => value is Value, wanted: string) =>
  (value: unknown, at: FieldPath): Stated<Value> | null => {
    if (!isGiven(value)) return null
    if (!is(value)) throw malformed(at, wanted)
    return { value, at }
  }

/** A value and its field; null if it was left out. Throws `invalid_parameter` if it has another type. */
export const statedString = typed((value) => typeof value === 'string', 'a string')
/** A number that a double cannot hold exactly is not a valid setting. */
export function statedNumber(value: unknown, at: FieldPath): Stated<number> | null {
  if (!isGiven(value)) return null
  const number = settingOf(value)
  if (number === null) throw malformed(at, 'a number, an integer of at most 53 bits')
  return { value: number, at }
}
export const statedBoolean = typed((value) => typeof value === 'boolean', 'true or false')
export const statedObject = typed(isObject, 'an object')

/** The most output tokens. Some callers send a negative number for "no limit"; other languages have no such value. */
export function statedLimit(value: unknown, at: FieldPath): Stated<number> | null {
  const limit = statedNumber(value, at)
  if (limit !== null && limit.value < 0) throw unsupported(at, 'must not be negative: leave it out where there is none')
  return limit
}

/** Records the caller's members that were given under their own names. */
export function gathered(
  body: Readonly<JsonObject>,
  names: readonly string[],
  into: Map<string, Stated<unknown>> = new Map(),
): Map<string, Stated<unknown>> {
  for (const name of names) if (isGiven(body[name])) into.set(name, { value: body[name], at: name })
  return into
}

interface About extends Pick<NeutralRequest, 'toolChoice' | 'parallelTools'> {
  /** Tools that stand elsewhere in the request. A later one takes the place of an earlier one of its name. */
  tools?: readonly NeutralTool[]
}

/**
 * `read` returns nothing for a tool that it leaves out, and several for one that holds others. A tool that
 * `tool_choice` requires cannot be left out. If none is left, nothing is said about tools: providers refuse that.
 */
export function toolsWith(
  given: unknown,
  read: (tool: JsonObject, at: FieldPath) => readonly NeutralTool[],
  { tools: others = [], ...about }: About,
): Pick<NeutralRequest, 'tools' | 'toolChoice' | 'parallelTools'> {
  if (!isGiven(given)) return { ...about, tools: newest(others) }
  const all = arrayAt(given, 'tools').map((tool, index) => objectAt(tool, `tools.${index}`))
  const own: NeutralTool[] = []
  const missing: JsonObject[] = []
  for (const [index, tool] of all.entries()) {
    const kept = read(tool, `tools.${index}`)
    if (kept.length === 0) missing.push(tool)
    else own.push(...kept)
  }
  const tools = others.length === 0 ? own : newest([...own, ...others])
  if (missing.length === 0) return { ...about, tools }
  requireNone(missing, tools, about)
  return tools.length === 0 ? { tools, toolChoice: null, parallelTools: null } : { ...about, tools }
}

const newest = (tools: readonly NeutralTool[]): readonly NeutralTool[] => [
  ...new Map(tools.map((tool) => [tool.name, tool])).values(),
]

function requireNone(missing: readonly JsonObject[], tools: readonly NeutralTool[], { toolChoice }: About): void {
  const choice = toolChoice?.value
  if (toolChoice === null || choice === undefined || choice === 'auto' || choice === 'none') return
  const isRequired =
    choice === 'required'
      ? tools.length === 0
      : !tools.some(({ name }) => name === choice.name) && missing.some(({ name }) => name === choice.name)
  if (isRequired) throw unsupported(toolChoice.at, 'requires a tool that only its own provider runs')
}
