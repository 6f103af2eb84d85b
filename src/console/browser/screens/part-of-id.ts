/** Parts of ids, as they are pasted: the beginning of one, or its end after `…`, as lists show it. */

const shortest = 8
const part = /^[0-9a-f]{8}[0-9a-f-]{0,27}$/i

/** What is left of a pasted id without what a list shows before it; null where it is no part of an id. */
export function partOfId(words: string): string | null {
  const text = words.replace(/^…|^\.\.\./, '').toLowerCase()
  return text.length >= shortest && part.test(text) ? text : null
}

const digitsOfTime = 12
/** A request is recorded at its end: the longest lasts less. */
const longestMs = 3_600_000

/**
 * When requests ended whose id begins so: an id begins with the millisecond in which it was made (RFC 9562 section 5.7).
 * Null where that is no time of the last years, as in the middle or at the end of an id.
 */
export function timeOfPrefix(prefix: string, now: number): { since: string; until: string } | null {
  const digits = prefix.replaceAll('-', '').slice(0, digitsOfTime)
  const [from, to] = ['0', 'f'].map((rest) => Number.parseInt(digits.padEnd(digitsOfTime, rest), 16))
  if (from === undefined || to === undefined || from > now || from < Date.UTC(2024, 0)) return null
  return { since: new Date(from).toISOString(), until: new Date(to + longestMs).toISOString() }
}
