/** The words that differ between two texts: what both begin and end with is told apart. */

export interface ChangedWords {
  start: string
  before: string
  after: string
  end: string
}

export function changedWords(before: string, after: string): ChangedWords {
  const [old, now] = [wordsOf(before), wordsOf(after)]
  const shortest = Math.min(old.length, now.length)
  let first = 0
  while (first < shortest && old[first] === now[first]) first += 1
  let last = 0
  while (last < shortest - first && old.at(-1 - last) === now.at(-1 - last)) last += 1
  const middle = (words: readonly string[]) => words.slice(first, words.length - last).join('')
  return {
    start: now.slice(0, first).join(''),
    before: middle(old),
    after: middle(now),
    end: now.slice(now.length - last).join(''),
  }
}

/** Words with the blanks behind them: joined they are the text again. */
const wordsOf = (text: string): readonly string[] => text.match(/\s+|[^\s]+\s*/g) ?? []

/** A value of a definition as people read it: a text without its quotes, anything else as JSON. */
export function readable(json: string): string {
  try {
    const value: unknown = JSON.parse(json)
    return typeof value === 'string' ? value : JSON.stringify(value, null, 2)
  } catch {
    // It is shown as it came.
    return json
  }
}

/** Where in a definition something changed: `inputSchema.properties.query.type` is `Argument “query”: type`. */
export function placeWords(path: string): string {
  const [, argument, rest] = /^inputSchema\.properties\.([^.[]+)(.*)$/.exec(path) ?? []
  if (argument !== undefined) return `Argument “${argument}”${rest === '' ? '' : `: ${rest?.replace(/^\./, '')}`}`
  if (/^inputSchema\.required\b/.test(path)) return 'Required arguments'
  if (/^outputSchema\b/.test(path)) return `Answer${path.slice('outputSchema'.length).replace(/^\./, ': ')}`
  return path.charAt(0).toUpperCase() + path.slice(1)
}
