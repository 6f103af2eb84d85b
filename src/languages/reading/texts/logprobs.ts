/**
 * Log probabilities repeat the text token by token, so a policy could not find there what it finds in the text: they
 * are removed from everything that is inspected.
 */
import { isObject } from '../json-value.ts'
import { isLogprobs } from './known-labels.ts'
import { isArgumentsObject } from './texts.ts'

const deepest = 64

/**
 * Empties all log probabilities in a parsed frame, except members of that name in a tool's arguments or a schema,
 * which are read as text. False if there are none.
 */
export const dropLogprobs = (value: unknown): boolean => dropWithin(value, '', 0)

function dropWithin(value: unknown, parentKey: string, depth: number): boolean {
  if (typeof value !== 'object' || value === null || depth > deepest) return false
  let dropped = false
  if (Array.isArray(value)) {
    for (const element of value) if (dropWithin(element, parentKey, depth + 1)) dropped = true
    return dropped
  }
  if (!isObject(value)) return false
  for (const key in value) {
    const inner = value[key]
    if (typeof inner !== 'object' || inner === null || isArgumentsObject(key, inner, value)) continue
    if (!isLogprobs(key, parentKey)) dropped = dropWithin(inner, key, depth + 1) || dropped
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
