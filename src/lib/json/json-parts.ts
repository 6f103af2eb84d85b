import { endOfString } from './string-end.ts'

/**
 * How many names, strings, numbers and words a JSON text holds, but no more than one past `most`: to count is to be sooner
 * done than to read. The text is known to be JSON.
 */
export function countParts(text: string, most: number): number {
  let count = 0
  for (let at = 0; at < text.length && count <= most; ) {
    const end = partEnd(text, at)
    if (end > at) count += 1
    at = Math.max(end, at + 1)
  }
  return count
}

const between = ' \t\r\n,:[]{}'

/** The end of the part that begins here; where none does, here. */
function partEnd(text: string, from: number): number {
  if (text[from] === '"') return endOfString(text, from)
  let at = from
  while (at < text.length && !between.includes(text.charAt(at))) at += 1
  return at
}
