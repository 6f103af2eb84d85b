/** A member of an object, with which its text begins; prose in braces has none. */
const firstMember = /^\s*\{\s*"(?:[^"\\]|\\.)*"\s*:/s

/**
 * Whether data is the beginning of a JSON object whose end is missing: a frame that was cut off, and no text of a model's.
 * What only has something behind it, or in it, that is no JSON is none.
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
