/**
 * Makes the bytes that are sent to a provider: the caller's bytes with single outermost JSON members, or form fields,
 * replaced, removed or added. All other bytes are kept (gateway/README.md).
 */

import { editForm, type FormParts } from '../../lib/http/multipart.ts'
import { editMembers, type JsonMembers } from '../../lib/json/json-members.ts'

/** The structure of a body, read from exactly its bytes. */
export type BodyMembers = JsonMembers | FormParts

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { ignoreBOM: true })

/** Applies edits: the member's new JSON text, or null to remove it. In a form, JSON strings are plain text. */
export function editBody(
  body: Uint8Array,
  members: BodyMembers,
  edits: ReadonlyMap<string, string | null>,
): Uint8Array {
  if ('parts' in members) return editForm(body, members, new Map([...edits].map(fieldText)))
  return encoder.encode(editMembers(decoder.decode(body), members, edits))
}

function fieldText([name, json]: [string, string | null]): [string, string | null] {
  if (json === null) return [name, null]
  const value: unknown = JSON.parse(json)
  return [name, typeof value === 'string' ? value : json]
}
