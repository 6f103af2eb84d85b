/**
 * Values of other types in the members in which a language has its texts. Clients append every value (`text +=
 * value`): a list or a number then becomes a text that no string contained.
 */
import { isNumber } from '../../../lib/json/exact-json.ts'
import { isObject, type JsonObject } from '../json-value.ts'
import type { TextKind } from './text-slot.ts'
import type { FoundText } from './texts.ts'

/** An object with texts: members that hold one text each, or a list of parts with texts. */
export interface Holder {
  readonly of: JsonObject
  readonly members: readonly string[]
}

const holderOf =
  (members: readonly string[]) =>
  (of: JsonObject): Holder => ({ of, members })

/** A typed part of a text. */
export const partHolder = holderOf(['text', 'thinking', 'refusal'])
/** Names the tool that is called, and contains its arguments. */
export const calledHolder = holderOf(['name', 'arguments', 'input'])

/**
 * Whether a number, or a list that holds something else than objects, is in the place of a text. Truth values do not
 * count.
 */
export const holdsNoText = ({ of, members }: Holder): boolean => members.some((member) => isNoText(of[member]))

const isNoText = (value: unknown): boolean => (Array.isArray(value) ? !value.every(isObject) : isNumber(value))

/** The numbers and truth values in the place of texts, as the texts that clients make of them. */
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
