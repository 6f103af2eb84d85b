/**
 * The members in which a language has its texts, and what stands there in a text's place. Clients add what comes to what
 * came (`text += value`), whatever it is: a list or a number becomes a text then, which says what no string said.
 */
import { isNumber } from '../../../lib/json/exact-json.ts'
import { isObject, type JsonObject, objectsOf } from '../json-value.ts'
import type { TextKind } from './text-slot.ts'
import type { FoundText } from './texts.ts'

/** An object with texts: the members that are one each, or a list of parts that have some. */
interface Holder {
  readonly of: JsonObject
  readonly members: readonly string[]
}

const ofDelta = ['content', 'reasoning_content', 'reasoning', 'refusal'] as const
const ofPart = ['text', 'thinking', 'refusal'] as const
const ofCalled = ['name', 'arguments', 'input'] as const

/** Of a choice: `said` names its delta, or its message. */
export function choiceHolders(choice: JsonObject, said: 'delta' | 'message'): readonly Holder[] {
  const { [said]: spoken } = choice
  const beside = { of: choice, members: ['text'] }
  if (!isObject(spoken)) return [beside]
  const { tool_calls: calls, function_call: called } = spoken
  const functions = objectsOf(calls).flatMap((call) => [call.function, call.custom])
  return [
    beside,
    { of: spoken, members: ofDelta },
    ...objectsOf(spoken.content).map(holderOf(ofPart)),
    ...[...functions, called].filter(isObject).map(holderOf(ofCalled)),
  ]
}

/** Of a content block, or a delta of one. */
export const blockHolder = (of: JsonObject): Holder => ({ of, members: ofBlock })
const ofBlock = ['text', 'thinking', 'partial_json', 'name'] as const

/** Of an output item. */
export const itemHolders = (item: JsonObject): readonly Holder[] => [
  { of: item, members: ofItem },
  ...[...objectsOf(item.content), ...objectsOf(item.summary)].map(holderOf(ofPart)),
]
const ofItem = [...ofCalled, 'code'] as const

/** Of an event of the responses language. */
export const eventHolders = (event: JsonObject, withDelta: boolean): readonly Holder[] => [
  { of: event, members: withDelta ? ofEvent : ofEventBesideDelta },
  ...(isObject(event.part) ? [{ of: event.part, members: ofPart }] : []),
  ...(isObject(event.item) ? itemHolders(event.item) : []),
  ...(isObject(event.response) ? objectsOf(event.response.output).flatMap(itemHolders) : []),
]
const ofEventBesideDelta = ['text', 'refusal', 'arguments', 'input', 'code', 'transcript'] as const
const ofEvent = ['delta', ...ofEventBesideDelta] as const

const holderOf =
  (members: readonly string[]) =>
  (of: JsonObject): Holder => ({ of, members })

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
