/**
 * Puts placeholders, or what a policy rewrites to, in the place of what was found in a text. All matches of one text are
 * replaced together, from its beginning, so that no offset is ever stale. In tool arguments, which are JSON text, the
 * replaced text is written as JSON writes strings, and what stood outside of a string (a number) becomes one, so that
 * the result still parses (protocols section 9).
 *
 * Where a policy asks for it, what was redacted in the request is kept for the time of the exchange under a numbered
 * placeholder (`[EMAIL_1]`, the same for the same value) and put back wherever the answer names that.
 */
import type { TextSlot } from '../dialects/dialect.ts'
import type { Match } from './kinds/kind.ts'

/** What was taken out of one exchange's request. Never leaves the process. */
export class Placeholders {
  readonly #byPlaceholder = new Map<string, string>()
  readonly #byValue = new Map<string, string>()
  readonly #counts = new Map<string, number>()

  get size(): number {
    return this.#byPlaceholder.size
  }

  /** The placeholder of a value, the same each time. */
  keep(label: string, value: string): string {
    const key = `${label}\n${value}`
    const known = this.#byValue.get(key)
    if (known !== undefined) return known
    const count = (this.#counts.get(label) ?? 0) + 1
    this.#counts.set(label, count)
    const placeholder = `[${label}_${count}]`
    this.#byValue.set(key, placeholder)
    this.#byPlaceholder.set(placeholder, value)
    return placeholder
  }

  /** Placeholder and value of all that was kept. */
  entries(): Iterable<readonly [placeholder: string, value: string]> {
    return this.#byPlaceholder
  }

  /** The text with the values back in their places; `inJson` where it is JSON text. */
  restored(text: string, inJson: boolean): string {
    if (this.size === 0 || !text.includes('[')) return text
    return text.replace(/\[[A-Z0-9_]+_\d+\]/g, (found) => {
      const value = this.#byPlaceholder.get(found)
      if (value === undefined) return found
      return inJson ? inString(value) : value
    })
  }
}

/** The slot's text with its matches replaced; `kept` where values are to be put back later. */
export function changedText(
  { kind, text }: Pick<TextSlot, 'kind' | 'text'>,
  matches: readonly Match[],
  action: 'redact' | 'rewrite',
  kept: Placeholders | null,
): string {
  const inJson = kind === 'tool_arguments'
  let changed = ''
  let from = 0
  let quoted = false
  for (const { start, end, label, replacement } of matches) {
    const found = text.slice(start, end)
    const instead = action === 'rewrite' ? (replacement ?? '') : (kept?.keep(label, found) ?? `[${label}]`)
    if (inJson) quoted = endsInString(text.slice(from, start), quoted)
    changed += text.slice(from, start) + (inJson ? asJson(instead, quoted) : instead)
    if (inJson) quoted = endsInString(found, quoted)
    from = end
  }
  return changed + text.slice(from)
}

const inString = (text: string): string => JSON.stringify(text).slice(1, -1)

const asJson = (text: string, quoted: boolean): string => (quoted ? inString(text) : JSON.stringify(text))

/** Whether the end of a stretch of JSON text stands inside of a string, when its beginning did or did not. */
function endsInString(stretch: string, begun: boolean): boolean {
  let quoted = begun
  for (let index = 0; index < stretch.length; index += 1) {
    const character = stretch[index]
    if (character === '\\' && quoted) index += 1
    else if (character === '"') quoted = !quoted
  }
  return quoted
}
