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
  if (text[from] === '"') return stringEnd(text, from)
  let at = from
  while (at < text.length && !between.includes(text.charAt(at))) at += 1
  return at
}

function stringEnd(text: string, from: number): number {
  for (let quote = text.indexOf('"', from + 1); quote !== -1; quote = text.indexOf('"', quote + 1)) {
    let slashes = 0
    while (text[quote - 1 - slashes] === '\\') slashes += 1
    if (slashes % 2 === 0) return quote + 1
  }
  return text.length
}
