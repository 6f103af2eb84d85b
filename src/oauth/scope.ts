/**
 * The scope registry: what a person may delegate, in a sentence each, and which of it is active (oauth/README.md). A
 * scope is a permission; a token permits what is both in its scope and held by its person.
 */
import { delegableScopes } from '../config.ts'

export const scopes = delegableScopes
export type Scope = (typeof scopes)[number]

/** What each lets an application do, as the consent page says it. */
export const scopeSentences: Readonly<Record<Scope, string>> = {
  'gateway:invoke': 'Send requests to models through the gateway in your name; what they cost counts as yours.',
  'mcp:invoke': 'Use tools, prompts and resources of connected MCP servers in your name.',
  'tokens:read': 'See the API tokens that you can see: names, limits and use, never their secrets.',
  'events:read': 'Read the recorded decisions that you can see.',
  'events:export': 'Download all recorded decisions that you can see.',
  'escalations:read': 'See requests that wait for a person to decide, as far as you can see them.',
}

export const isScope = (text: string): text is Scope => scopes.some((scope) => scope === text)

/** The active scopes of a setting such as `gateway:invoke mcp:invoke`. */
export const activeScopes = (setting: string): readonly Scope[] => setting.split(' ').filter(isScope)

/** RFC 6749 section 3.3: tokens of %x21 / %x23-5B / %x5D-7E, separated by single spaces. */
const scopeForm = /^[\x21\x23-\x5b\x5d-\x7e]+(?: [\x21\x23-\x5b\x5d-\x7e]+)*$/

/** The words of a `scope` parameter, each once, in the order given; null where it has not the form of one. */
export const readScope = (text: string): string[] | null =>
  scopeForm.test(text) ? [...new Set(text.split(' '))] : null

/** A scope as protocol messages write it. */
export const writeScope = (words: readonly string[]): string => words.join(' ')
