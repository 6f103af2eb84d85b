/**
 * Gives tools that the provider runs a default maximum of uses, for tokens with a budget: agents send web search with
 * every request and no maximum, and a cost without a bound would be refused. The event notes it.
 */
import type { Exchange, PricedPath } from '../exchange.ts'
import { required } from '../exchange.ts'
import { memberJson } from './member-json.ts'
import { languageOf } from './translate.ts'

/** Each use may cost the model's whole context window again, so a larger number would hold much of a budget. */
const defaultToolUses = 3

/** Changes the request only for a provider that is asked in the caller's language, at a model with a price of uses. */
export function limitTools(exchange: Exchange, priced: readonly PricedPath[]): void {
  const { dialect, parsed, edits, notes } = exchange
  const facts = required(exchange.facts)
  const [first] = priced
  if (facts.unbounded !== 'tools' || parsed === null || first === undefined) return
  if (languageOf(exchange, first.model) !== null || !first.terms.price?.toolUse) return
  const changed = dialect.limitTools?.(parsed, defaultToolUses) ?? []
  if (changed.length === 0) return
  for (const member of changed) edits.set(member, memberJson(exchange, member, parsed[member]))
  notes.push('tools.uses_limited')
  exchange.facts = { ...dialect.read(parsed), sessionId: facts.sessionId }
}
