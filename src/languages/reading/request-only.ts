/**
 * What families whose answers no policy reads have in common (policies/README.md): policies see the request alone,
 * errors are in the envelope, and a request that waits for a person is refused with 403 `policy.escalated`.
 */
import { envelope } from '../../failure.ts'
import type { Dialect } from '../dialect.ts'
import { isObject, type JsonObject } from './json-value.ts'

export const requestOnly = {
  answerText: () => [],
  errorBody: envelope,
  providerError: () => null,
  escalation: () => null,
} as const satisfies Partial<Dialect>

/** The estimated characters of an input: of its texts, or four for each token number. */
export function inputLength(value: unknown): number {
  if (typeof value === 'string') return value.length
  if (typeof value === 'number') return 4
  if (Array.isArray(value)) return value.reduce((length: number, part) => length + inputLength(part), 0)
  return isObject(value) && typeof value.text === 'string' ? value.text.length : 0
}

/** Whether an input, or a part of it, is made of tokens. */
export const holdsTokens = (value: unknown): boolean =>
  typeof value === 'number' || (Array.isArray(value) && value.some(holdsTokens))

/** Lists of whole numbers that are not text: tokens that the model may or may not use. */
const choosing: ReadonlySet<string> = new Set(['allowed_token_ids', 'stop_token_ids', 'bad_words_ids', 'logit_bias'])
/** Members that contain the caller's text; arguments of tools and log probabilities contain numbers of their own. */
const textual = /^(?:content|text|input|prompt|system|instructions)$|ids$|tokens?$/
const ownNumbers: ReadonlySet<string> = new Set([
  ...['logprobs', 'arguments', 'tools', 'functions', 'response_format', 'format'],
])

/**
 * The outermost member that holds text as tokens: one of `texts` with numbers in any form, or any member with a list
 * of whole numbers as its value (`prompt_token_ids`) or in place of a text inside it (`content: [1, 2]`); null if
 * there is none.
 */
export function tokenMember(body: Readonly<JsonObject>, ...texts: readonly string[]): string | null {
  for (const member in body) {
    const value = body[member]
    if (texts.includes(member) && holdsTokens(value)) return member
    if (typeof value !== 'object' || choosing.has(member)) continue
    if (isTokens(value) || hidesTokens(value, member, 0)) return member
  }
  return null
}

const isTokens = (value: unknown): boolean => Array.isArray(value) && value.length > 0 && value.every(isTokenOrTokens)

const isTokenOrTokens = (value: unknown): boolean => Number.isSafeInteger(value) || isTokens(value)

const deepest = 64

function hidesTokens(value: unknown, key: string, depth: number): boolean {
  if (typeof value !== 'object' || value === null || choosing.has(key) || ownNumbers.has(key)) return false
  if (depth > deepest) return false
  if (Array.isArray(value)) {
    if (textual.test(key) && isTokens(value)) return true
    for (const inner of value) if (hidesTokens(inner, key, depth + 1)) return true
    return false
  }
  if (!isObject(value)) return false
  for (const name in value) {
    const inner = value[name]
    if (typeof inner !== 'object' || (name === 'input' && isToolUse(value))) continue
    if (hidesTokens(inner, name, depth + 1)) return true
  }
  return false
}

const isToolUse = ({ type }: JsonObject): boolean => typeof type === 'string' && type.endsWith('tool_use')
