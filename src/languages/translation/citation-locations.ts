/**
 * Converts the place that a citation points to between Anthropic's citations (Messages API, TextCitation:
 * `char_location`, `page_location`, `content_block_location`) and Converse's (AWS Bedrock Runtime API,
 * CitationLocation). Both count from the same start. A web citation needs a value that only Anthropic's own search
 * makes, and has no form there.
 */

import type { NeutralCitation } from '../neutral.ts'
import { isObject, type JsonObject } from '../reading/json-value.ts'

const forms = [
  { type: 'char_location', member: 'documentChar', start: 'start_char_index', end: 'end_char_index' },
  { type: 'page_location', member: 'documentPage', start: 'start_page_number', end: 'end_page_number' },
  { type: 'content_block_location', member: 'documentChunk', start: 'start_block_index', end: 'end_block_index' },
] as const

/** A citation in Anthropic's form; null if it has none there. */
export function messagesCitation({ title, citedText, original }: NeutralCitation): JsonObject | null {
  const location = isObject(original.location) ? original.location : {}
  for (const { type, member, start, end } of forms) {
    const place = location[member]
    if (!isObject(place)) continue
    return {
      type,
      cited_text: citedText ?? '',
      document_index: place.documentIndex ?? 0,
      document_title: title,
      [start]: place.start,
      [end]: place.end,
    }
  }
  return null
}

/** Converse's location of a citation; null if it has none there. */
export function converseLocation({ url, original }: NeutralCitation): JsonObject | null {
  if (isObject(original.location)) return original.location
  for (const { type, member, start, end } of forms) {
    if (original.type !== type) continue
    return { [member]: { documentIndex: original.document_index, start: original[start], end: original[end] } }
  }
  return url === null ? null : { web: { url } }
}
