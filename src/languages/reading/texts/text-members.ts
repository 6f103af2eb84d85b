/**
 * What stands in the place of a text, in the members in which a language has its texts. Clients add what comes to what
 * came (`text += value`), whatever it is: a list or a number becomes a text then, which says what no string said.
 */
import { isNumber } from '../../../lib/json/exact-json.ts'
import { isObject, type JsonObject } from '../json-value.ts'
import type { TextKind } from './text-slot.ts'
import type { FoundText } from './texts.ts'

/** An object with texts: the members that are one each, or a list of parts that have some. */
export interface Holder {
  readonly of: JsonObject
  readonly members: readonly string[]
}

const holderOf =
  (members: readonly string[]) =>
  (of: JsonObject): Holder => ({ of, members })

/** A typed part of a text. */
export const partHolder = holderOf(['text', 'thinking', 'refusal'])
/** What names a tool that is called, and says with what. */
export const calledHolder = holderOf(['name', 'arguments', 'input'])

/** Whether a number, or a list of other things than objects, stands where a text should. Truth values say nothing. */
export const holdsNoText = ({ of, members }: Holder): boolean => members.some((member) => isNoText(of[member]))

const isNoText = (value: unknown): boolean => (Array.isArray(value) ? !value.every(isObject) : isNumber(value))

/** The numbers and truth values that stand where texts should, as the texts that clients make of them. */
export function spelledTexts({ of, members }: Holder): FoundText[] {
  const found: FoundText[] = []
  for (const member of members) {
    const value = of[member]
    if (!isNumber(value) && typeof value !== 'boolean') continue
    const text = typeof value === 'object' ? value.rawJSON : String(value)
    const put = (changed: string) => {
      if (changed !== text) of[member] = changed
    }
    found.push({ place: member, kind: kindOf(member), text, alone: true, put })
  }
  return found
}

function kindOf(member: string): TextKind {
  if (member === 'arguments' || member === 'partial_json') return 'tool_arguments'
  if (member === 'refusal' || member === 'name') return member
  return /reason|think/.test(member) ? 'reasoning' : 'content'
}
