/**
 * Log probabilities spell the text once more, token by token, so that no policy could find in them what it finds in the
 * text: they are left out of what is inspected, wherever they stand.
 */
import { isObject } from './json-value.ts'
import { isArgumentsObject } from './texts.ts'

const deepest = 64

/** Empties all log probabilities in a parsed frame, but for what a tool's arguments call so; false where there are none. */
export function dropLogprobs(value: unknown, depth = 0): boolean {
  if (typeof value !== 'object' || value === null || depth > deepest) return false
  let dropped = false
  if (Array.isArray(value)) {
    for (const element of value) if (dropLogprobs(element, depth + 1)) dropped = true
    return dropped
  }
  if (!isObject(value)) return false
  for (const key in value) {
    const inner = value[key]
    if (typeof inner !== 'object' || inner === null || isArgumentsObject(key, inner, value)) continue
    if (key !== 'logprobs') dropped = dropLogprobs(inner, depth + 1) || dropped
    else if (!Array.isArray(inner)) {
      value[key] = null
      dropped = true
    } else if (inner.length > 0) {
      value[key] = []
      dropped = true
    }
  }
  return dropped
}
