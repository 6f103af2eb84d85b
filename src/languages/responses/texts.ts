/**
 * Where texts stand in the items of the responses language, and which channel of a stream brings each: an item's text
 * comes in pieces (`response.output_text.delta`), and again whole with every event that says a part of it is done.
 */

import { membersWhere } from '../member-table.ts'
import { isGiven, isObject, type JsonObject, objectsOf, textOf } from '../reading/json-value.ts'
import { isKnownLabel } from '../reading/texts/known-labels.ts'
import type { RequestEcho } from '../reading/texts/request-echo.ts'
import { isUnread } from '../reading/texts/request-texts.ts'
import { unsignItem } from '../reading/texts/signed-reasoning.ts'
import { type Holder, partHolder } from '../reading/texts/text-members.ts'
import type { TextKind } from '../reading/texts/text-slot.ts'
import { asKind, type FoundText, textsIn, textsOfMember, whereAltered } from '../reading/texts/texts.ts'
import { responsesMembers, spokenByDelta, spokenByEvent, spokenByItem } from './members.ts'

/** Members of a response that say the request's own words again. */
const echoes = membersWhere(responsesMembers, ({ repeated }) => repeated === 'words')
/** And those that say what was set, with what was left to the provider filled in. */
const settings = [...membersWhere(responsesMembers, ({ repeated }) => repeated === 'setting'), 'incomplete_details']

/** Members of a response that are read apart: the items one by one, and what is said again of the request. */
export const readApart: ReadonlySet<string> = new Set(['output', ...echoes, ...settings])

/**
 * The texts where a response says the request again, but for those that the request has: only what the caller did not
 * say itself is told to it. Of settings words of the language and names of properties are none either, and what else
 * stands there is as a name: no word of the answer's.
 */
export function echoedTexts(response: JsonObject, asked: RequestEcho | undefined): FoundText[] {
  const texts: FoundText[] = []
  for (const member of echoes) {
    if (!isGiven(response[member])) continue
    for (const found of textsOfMember(response, member)) if (asked?.has(found.text) !== true) texts.push(found)
  }
  for (const member of settings) {
    if (!isGiven(response[member])) continue
    for (const found of textsOfMember(response, member)) {
      const isSetting = isKnownLabel(found.text) || isUnread(found) || asked?.has(found.text) === true
      if (!isSetting) texts.push(asKind(found, 'name'))
    }
  }
  return texts
}

/** What an item of input or output holds, by its type. */
const kinds: Readonly<Record<string, TextKind>> = {
  reasoning: 'reasoning',
  function_call_output: 'tool_result',
  custom_tool_call_output: 'tool_result',
  computer_call_output: 'tool_result',
  local_shell_call_output: 'tool_result',
  shell_call_output: 'tool_result',
  apply_patch_call_output: 'tool_result',
  mcp_list_tools: 'tool_result',
  file_search_call: 'tool_result',
}

/** `files`: texts in base64 are read too. */
export const itemTexts = (item: JsonObject, files = false): FoundText[] => {
  const texts = textsIn(item, { kind: kinds[textOf(item.type) ?? ''] ?? 'content', files })
  if (item.type === 'reasoning') {
    return texts.map((found) => (found.kind === 'reasoning' ? whereAltered(found, () => unsignItem(item)) : found))
  }
  if (item.type !== 'mcp_call') return texts
  return texts.map((found) => (found.place === 'output' ? asKind(found, 'tool_result') : found))
}

/** What holds the texts of an output item. */
export const itemHolders = (item: JsonObject): readonly Holder[] => [
  { of: item, members: spokenByItem },
  ...[...objectsOf(item.content), ...objectsOf(item.summary)].map(partHolder),
]

/** What holds the texts of an event. */
export const eventHolders = (event: JsonObject, withDelta: boolean): readonly Holder[] => [
  { of: event, members: withDelta ? spokenByDelta : spokenByEvent },
  ...(isObject(event.part) ? [partHolder(event.part)] : []),
  ...(isObject(event.item) ? itemHolders(event.item) : []),
  ...(isObject(event.response) ? objectsOf(event.response.output).flatMap(itemHolders) : []),
]

/** Whether an item's texts stand apart: entries of a list, which nobody reads as one text. */
export const isList = ({ type }: JsonObject): boolean => type === 'mcp_list_tools' || type === 'file_search_call'

/** Whose words an item of the input is. */
export function roleOf(item: JsonObject): string | null {
  const role = textOf(item.role)
  if (role !== null) return role
  const type = textOf(item.type) ?? ''
  if (kinds[type] === 'tool_result') return 'tool'
  return type.endsWith('_call') || type === 'reasoning' ? 'assistant' : null
}

/** The stem of the events that bring a text of an output item, and the number of its part. */
export interface ItemPart {
  stem: string
  part: { content_index: number } | { summary_index: number } | null
}

const inContent = /^content#(\d+)\/(?:text|refusal|transcript)$/
const inSummary = /^summary#(\d+)\/text$/

/** How a text of an output item is streamed; null where it only ever comes whole. */
export function partOf(item: JsonObject, place: string): ItemPart | null {
  const content = inContent.exec(place)
  if (content !== null) {
    const index = Number(content[1])
    const stem = place.endsWith('refusal') ? 'refusal' : contentStem(item, index, place)
    return { stem, part: { content_index: index } }
  }
  const summary = inSummary.exec(place)
  if (summary !== null) return { stem: 'reasoning_summary_text', part: { summary_index: Number(summary[1]) } }
  if (place === 'arguments') {
    return { stem: item.type === 'mcp_call' ? 'mcp_call_arguments' : 'function_call_arguments', part: null }
  }
  if (place === 'input') return { stem: 'custom_tool_call_input', part: null }
  return place === 'code' ? { stem: 'code_interpreter_call_code', part: null } : null
}

function contentStem({ content }: JsonObject, index: number, place: string): string {
  if (place.endsWith('transcript')) return 'output_audio_transcript'
  const part: unknown = Array.isArray(content) ? content[index] : null
  return isObject(part) && part.type === 'reasoning_text' ? 'reasoning_text' : 'output_text'
}
