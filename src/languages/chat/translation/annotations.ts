/**
 * Citations in chat's form: `annotations` of a message, each with the range of the content that it belongs to. The
 * language only knows web addresses; a citation of a document is written as `document_citation` beside them.
 */

import type { NeutralCitation } from '../../neutral.ts'
import { isObject, type JsonObject, objectsOf, textOf } from '../../reading/json-value.ts'

export const annotationsIn = (annotations: unknown): NeutralCitation[] => objectsOf(annotations).map(citationOf)

function citationOf(annotation: JsonObject): NeutralCitation {
  const inner = annotation.url_citation ?? annotation.document_citation
  const cited = isObject(inner) ? inner : annotation
  return {
    title: textOf(cited.title) ?? textOf(cited.filename),
    url: textOf(cited.url),
    citedText: textOf(cited.cited_text),
    original: annotation,
  }
}

/** The place of a cited text in the whole content. */
export interface CitedRange {
  start: number
  end: number
}

/** The range within a text, if the citation's own language gave one. */
function rangeIn({ original }: NeutralCitation, text: CitedRange): CitedRange {
  const inner = isObject(original.url_citation) ? original.url_citation : original
  const { start_index: start, end_index: end } = inner
  if (typeof start !== 'number' || typeof end !== 'number') return text
  return { start: text.start + start, end: text.start + end }
}

export function annotationOf(citation: NeutralCitation, text: CitedRange): JsonObject {
  const { start, end } = rangeIn(citation, text)
  const range = { start_index: start, end_index: end }
  if (citation.url !== null) {
    return { type: 'url_citation', url_citation: { url: citation.url, title: citation.title ?? '', ...range } }
  }
  const cited = citation.citedText === null ? {} : { cited_text: citation.citedText }
  return { type: 'document_citation', document_citation: { title: citation.title ?? '', ...cited, ...range } }
}
