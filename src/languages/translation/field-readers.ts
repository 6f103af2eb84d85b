/**
 * Reads the members of a caller's body so that none is dropped: a member is read, or known to have no effect, or
 * refused by its name. A null member counts as left out.
 */

import { settingOf } from '../../lib/json/exact-json.ts'
import type { MemberTable } from '../member-table.ts'
import type { FieldPath, Stated } from '../neutral.ts'
import { isGiven, isObject, type JsonObject } from '../reading/json-value.ts'
import { malformed, unsupported } from './translation-errors.ts'

/** Refuses the members that the table refuses, and unknown ones. */
export function checkMembers(body: Readonly<JsonObject>, table: MemberTable): void {
  for (const name in body) {
    const value = body[name]
    if (!isGiven(value)) continue
    const translation = Object.hasOwn(table, name) ? table[name]?.translation : undefined
    if (translation === undefined) throw unsupported(name, unknownMember)
    if (translation === 'carried' || !('refused' in translation)) continue
    if (translation.onlyAs?.some((only) => Bun.deepEquals(only, value))) continue
    throw unsupported(name, translation.refused)
  }
}

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
