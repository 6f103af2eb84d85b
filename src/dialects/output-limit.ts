/** Which members of a request's body limit its output, in each language: what a clamp writes. */
import type { Family } from './dialect.ts'
import { isGiven } from './json-value.ts'

const chatMembers = ['max_completion_tokens', 'max_tokens']

/**
 * Empty where the family has no such member. On chat those that the caller gave, because a provider may follow either;
 * the newer name where it gave none.
 */
export function outputLimitMembers(family: Family, body: Readonly<Record<string, unknown>>): readonly string[] {
  if (family === 'chat') {
    const given = chatMembers.filter((name) => isGiven(body[name]))
    return given.length === 0 ? chatMembers.slice(0, 1) : given
  }
  if (family === 'responses') return ['max_output_tokens']
  return family === 'messages' || family === 'completions' ? ['max_tokens'] : []
}
