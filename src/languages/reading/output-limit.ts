/** Which members of a request's body limit its output, in each language: what a clamp writes. */
import type { Family } from '../families.ts'
import { isGiven } from './json-value.ts'

const chatMembers = ['max_completion_tokens', 'max_tokens']
const newerMember = ['max_completion_tokens']
const olderMember = ['max_tokens']
const others: Readonly<Partial<Record<Family, readonly string[]>>> = {
  responses: ['max_output_tokens'],
  messages: olderMember,
  completions: olderMember,
}
const none: readonly string[] = []

/**
 * Empty where the family has no such member. On chat those that the caller gave, because a provider may follow either;
 * the newer name where it gave none.
 */
export function outputLimitMembers(family: Family, body: Readonly<Record<string, unknown>>): readonly string[] {
  if (family !== 'chat') return others[family] ?? none
  return isGiven(body.max_tokens) ? (isGiven(body.max_completion_tokens) ? chatMembers : olderMember) : newerMember
}
