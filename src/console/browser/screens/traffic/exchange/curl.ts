/** A request as a command for a shell. The record has no body: its text is the captured one, or a placeholder. */
import type { Event } from '../../../api/routes.ts'
import { detail } from './event-details.ts'

const placeholder = 'Write the prompt here'

/** The request as far as the record has it; null for routes that take no prompt as text. */
export function requestOf(outcome: Event): { path: string; family: string; body: object } | null {
  const [method, path = ''] = (detail(outcome, 'route') ?? '').split(' ')
  const model = detail(outcome, 'model')
  if (method !== 'POST' || model === null) return null
  const text = outcome.prompt_redacted ?? placeholder
  const messages = [{ role: 'user', content: text }]
  if (path === '/v1/chat/completions') return { path, family: 'chat', body: { model, messages } }
  if (path === '/v1/messages') return { path, family: 'messages', body: { model, max_tokens: 1024, messages } }
  return path === '/v1/responses' ? { path, family: 'responses', body: { model, input: text } } : null
}

export function curlOf(outcome: Event): string | null {
  const request = requestOf(outcome)
  if (request === null) return null
  return [
    `curl "$GATEHOUSE_URL"${quoted(request.path)}`,
    `-H "Authorization: Bearer $GATEHOUSE_TOKEN"`,
    `-H 'Content-Type: application/json'`,
    `-d ${quoted(JSON.stringify(request.body))}`,
  ].join(' \\\n  ')
}

/** Text as one word of a POSIX shell. */
const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`
