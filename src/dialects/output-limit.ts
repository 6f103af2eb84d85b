/** Which member of a request's body limits its output, in each language: what a clamp writes. */
import type { Family } from './dialect.ts'

/** Null where the family has no such member. On chat the newer name, unless the caller used the older one. */
export function outputLimitMember(family: Family, body: Readonly<Record<string, unknown>>): string | null {
  if (family === 'chat')
    return 'max_tokens' in body && !('max_completion_tokens' in body) ? 'max_tokens' : 'max_completion_tokens'
  if (family === 'responses') return 'max_output_tokens'
  return family === 'messages' || family === 'completions' ? 'max_tokens' : null
}
