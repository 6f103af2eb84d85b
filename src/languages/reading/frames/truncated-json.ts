/** The first member of an object; prose in braces has none. */
const firstMember = /^\s*\{\s*"(?:[^"\\]|\\.)*"\s*:/s

/**
 * Whether data is the beginning of a JSON object whose end is missing: a frame that was cut off, not a model's text.
 * Data with invalid JSON after it or inside it is not such a beginning.
 */
export function isTruncatedObject(data: string): boolean {
  if (!firstMember.test(data)) return false
  let depth = 0
  let inString = false
  for (let at = 0; at < data.length; at++) {
    const unit = data[at]
    if (inString && unit === '\\') at++
    else if (unit === '"') inString = !inString
    else if (inString) continue
    else if (unit === '{' || unit === '[') depth++
    else if ((unit === '}' || unit === ']') && --depth === 0) return false
  }
  return true
}
