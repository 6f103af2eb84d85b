/**
 * What changed from an approved definition to another one of the same offer, for a person to read before approving: one
 * entry for each member that differs, with its value before and after as JSON. Of long texts only the part that differs
 * is shown, with some of what stands around it.
 */
import { isJson } from '../protocol.ts'

export interface Difference {
  /** Where it is: `inputSchema.properties.to.description`, `inputSchema.required[1]`. */
  path: string
  /** JSON; null where the member was added. */
  before: string | null
  /** JSON; null where the member was removed. */
  after: string | null
}

/** More are not listed: such a definition is read as a whole. */
const mostDifferences = 200
const aroundCharacters = 40
const longestCharacters = 2000

export function differences(before: unknown, after: unknown): Difference[] {
  const found: Difference[] = []
  compare(before, after, '', found)
  return found
}

function compare(before: unknown, after: unknown, path: string, found: Difference[]): void {
  if (found.length >= mostDifferences) return
  if (isJson(before) && isJson(after)) {
    const names = new Set([...Object.keys(before), ...Object.keys(after)])
    for (const name of names) compare(own(before, name), own(after, name), inside(path, name), found)
  } else if (Array.isArray(before) && Array.isArray(after)) {
    const length = Math.max(before.length, after.length)
    for (let index = 0; index < length; index++) compare(before[index], after[index], `${path}[${index}]`, found)
  } else if (JSON.stringify(before) !== JSON.stringify(after)) found.push(differenceOf(before, after, path))
}

/** A member may have any name, such as `__proto__`. */
const own = (holder: object, name: string): unknown =>
  Object.hasOwn(holder, name) ? Reflect.get(holder, name) : undefined

const inside = (path: string, name: string): string => {
  if (!/^[\w$-]+$/.test(name)) return `${path}[${JSON.stringify(name)}]`
  return path === '' ? name : `${path}.${name}`
}

function differenceOf(before: unknown, after: unknown, path: string): Difference {
  if (typeof before === 'string' && typeof after === 'string') {
    const [from, to] = changedParts(before, after)
    return { path, before: shown(from), after: shown(to) }
  }
  return { path, before: shown(before), after: shown(after) }
}

/** Both texts without what is the same at their ends, but for some characters of it. */
function changedParts(before: string, after: string): [string, string] {
  const shorter = Math.min(before.length, after.length)
  let start = 0
  while (start < shorter && before[start] === after[start]) start++
  let end = 0
  while (end < shorter - start && before[before.length - 1 - end] === after[after.length - 1 - end]) end++
  const from = Math.max(0, start - aroundCharacters)
  const rest = Math.max(0, end - aroundCharacters)
  const part = (text: string) =>
    `${from > 0 ? '… ' : ''}${text.slice(from, text.length - rest)}${rest > 0 ? ' …' : ''}`.toWellFormed()
  return [part(before), part(after)]
}

function shown(value: unknown): string | null {
  if (value === undefined) return null
  const text = JSON.stringify(value)
  if (text.length <= longestCharacters) return text
  return `${text.slice(0, longestCharacters).toWellFormed()} … and ${text.length - longestCharacters} more characters`
}
