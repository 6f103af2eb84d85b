/**
 * What the families have in common whose answers no policy reads (service.md Limits): policies see the request alone,
 * errors are in the envelope, a request that waits for a person is refused with 403 `policy.escalated`.
 */
import { envelope } from '../failure.ts'
import type { Dialect, TextSlot } from './dialect.ts'
import { isObject, type JsonObject } from './json-value.ts'

export const requestOnly = {
  policyStages: ['pre_request'],
  requestForm: 'json',
  strictRequestId: false,
  answerText: () => [],
  errorBody: envelope,
  providerError: () => null,
  escalation: () => null,
} as const satisfies Partial<Dialect>

/** The texts of a member that is a string, a list of them, or a list of parts with a `text`. */
export function inputSlots(body: JsonObject, member: string): TextSlot[] {
  const value = body[member]
  if (typeof value === 'string') return [slot(member, value, (text) => put(body, member, text))]
  if (!Array.isArray(value)) return []
  return value.flatMap((part, index) => {
    if (typeof part === 'string') return [slot(member, part, (text) => value.splice(index, 1, text))]
    if (!isObject(part) || typeof part.text !== 'string') return []
    return [slot(member, part.text, (text) => put(part, 'text', text))]
  })
}

function put(holder: JsonObject, key: string, text: string): void {
  holder[key] = text
}

const slot = (member: string, text: string, replace: (text: string) => void): TextSlot => ({
  member,
  kind: 'content',
  role: 'user',
  text,
  replace,
})

/** About how many characters an input has: of its texts, or four for each number of one that is made of tokens. */
export function inputLength(value: unknown): number {
  if (typeof value === 'string') return value.length
  if (typeof value === 'number') return 4
  if (Array.isArray(value)) return value.reduce((length: number, part) => length + inputLength(part), 0)
  return isObject(value) && typeof value.text === 'string' ? value.text.length : 0
}

/** Whether an input is made of tokens, the whole of it or a part. */
export const holdsTokens = (value: unknown): boolean =>
  typeof value === 'number' || (Array.isArray(value) && value.some(holdsTokens))
