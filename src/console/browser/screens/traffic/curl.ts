/** A request as a command for a shell. The record has no body: its text is the captured one, or a placeholder. */
import type { Event } from '../../api/routes.ts'
import { detail } from './exchange-story.ts'

const placeholder = 'Write the prompt here'

/** Null for routes that take no prompt as text. */
export function curlOf(outcome: Event): string | null {
  const [method, path] = (detail(outcome, 'route') ?? '').split(' ')
  const model = detail(outcome, 'model')
  const body = model === null ? null : bodyOf(path ?? '', model, outcome.prompt_redacted ?? placeholder)
  if (method !== 'POST' || body === null) return null
  return [
    `curl "$GATEHOUSE_URL"${quoted(path ?? '')}`,
    `-H "Authorization: Bearer $GATEHOUSE_TOKEN"`,
    `-H 'Content-Type: application/json'`,
    `-d ${quoted(JSON.stringify(body))}`,
  ].join(' \\\n  ')
}

function bodyOf(path: string, model: string, text: string): object | null {
  const messages = [{ role: 'user', content: text }]
  if (path === '/v1/chat/completions') return { model, messages }
  if (path === '/v1/messages') return { model, max_tokens: 1024, messages }
  return path === '/v1/responses' ? { model, input: text } : null
}

/** Text as one word of a POSIX shell. */
const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`
