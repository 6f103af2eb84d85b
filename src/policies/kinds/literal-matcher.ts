/**
 * Finds literal texts. At each position the longest text that begins there wins, then the search continues after it.
 * So a match is certain once the text so far decides which one is the longest.
 */
import type { Match, TextFollower, TextMatcher } from './kind.ts'

/** No text is empty. */
export function literalMatcher(texts: readonly string[]): TextMatcher {
  const byFirst = new Map<string, string[]>()
  for (const text of texts.toSorted((one, other) => other.length - one.length)) {
    const first = text[0] ?? ''
    byFirst.set(first, [...(byFirst.get(first) ?? []), text])
  }
  /** The match at an offset, null for none, `open` if more text could decide differently. */
  const at = (text: string, offset: number, last: boolean): string | null | 'open' => {
    const rest = text.length - offset
    for (const wanted of byFirst.get(text[offset] ?? '') ?? []) {
      if (text.startsWith(wanted, offset)) return wanted
      if (!last && rest < wanted.length && wanted.startsWith(text.slice(offset))) return 'open'
    }
    return null
  }
  const follow = (): TextFollower => {
    let held = ''
    let start = 0
    return {
      push(piece, last) {
        held += piece
        const matches: Match[] = []
        let offset = 0
        while (offset < held.length) {
          const found = at(held, offset, last)
          if (found === 'open') break
          if (found === null) offset += 1
          else {
            const [from, to] = [start + offset, start + offset + found.length]
            matches.push({ start: from, end: to, label: 'TEXT', entry: `texts[${texts.indexOf(found)}]` })
            offset += found.length
          }
        }
        held = held.slice(offset)
        start += offset
        return { matches, safe: start }
      },
    }
  }
  const mayMatch = (text: string) => texts.some((wanted) => text.includes(wanted))
  return { bounded: true, mayMatch, follow, matches: (text) => follow().push(text, true).matches }
}
