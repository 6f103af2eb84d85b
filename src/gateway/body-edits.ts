/**
 * The bytes that are sent to a provider: the caller's own, with single outermost members written anew or left out and
 * all other bytes kept (contract section 6).
 */
import type { JsonMembers } from '../lib/json-members.ts'
import { replaceValue } from '../lib/json-members.ts'

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { ignoreBOM: true })

/** Applies edits of members that the body has. `members` are those of exactly these bytes. */
export function editBody(
  body: Uint8Array,
  members: JsonMembers,
  edits: ReadonlyMap<string, string | null>,
): Uint8Array {
  let text = decoder.decode(body)
  for (let index = members.names.length - 1; index >= 0; index--) {
    const json = edits.get(members.names[index] ?? '')
    const span = members.spans[index]
    if (json === undefined || json === null || span === undefined) continue
    text = replaceValue(text, span, json)
  }
  return encoder.encode(text)
}
