/** Filters (RFC 7644 section 3.4.2.2): comparisons by `eq`, joined by `and`. Provisioning clients send no others. */
import { ScimError } from './scim-error.ts'

export interface Comparison {
  /** In lower case, without the URN of its schema and without a filter in brackets: `emails.value`. */
  attribute: string
  value: string | boolean
}

export const longestFilter = 1000
const mostComparisons = 10

const comparison = /^\s*([a-z$][\w$:.-]*)(?:\[[^\]]*\])?(\.\w+)?\s+(\w+)\s+("(?:[^"\\]|\\.)*"|true|false)\s*/i

/** Throws `ScimError` invalidFilter. */
export function parseFilter(text: string): readonly Comparison[] {
  if (text.length > longestFilter) throw invalid(`A filter has at most ${longestFilter} characters`)
  const found: Comparison[] = []
  let rest = text
  while (true) {
    const [matched, path = '', sub = '', operator = '', literal = ''] = comparison.exec(rest) ?? []
    if (matched === undefined) throw invalid('Write a filter as: attribute eq "value", joined by and')
    if (operator.toLowerCase() !== 'eq') throw invalid('A filter compares by eq alone')
    found.push({ attribute: attributeOf(path + sub), value: readValue(literal) })
    if (found.length > mostComparisons) throw invalid(`A filter has at most ${mostComparisons} comparisons`)
    rest = rest.slice(matched.length)
    if (rest === '') return found
    const and = /^and\s/i.exec(rest)
    if (and === null) throw invalid('Join comparisons by and')
    rest = rest.slice(and[0].length)
  }
}

const invalid = (detail: string): ScimError => new ScimError(400, 'invalidFilter', detail)

const schemaUrn = /^urn:ietf:params:scim:schemas:core:2\.0:(?:user|group):/

const attributeOf = (path: string): string => path.toLowerCase().replace(schemaUrn, '')

function readValue(literal: string): string | boolean {
  try {
    const value: unknown = JSON.parse(literal.startsWith('"') ? literal : literal.toLowerCase())
    if (typeof value === 'string' || typeof value === 'boolean') return value
  } catch {
    // Such as an escape that JSON does not have.
  }
  throw invalid('Write a value as a JSON string')
}
