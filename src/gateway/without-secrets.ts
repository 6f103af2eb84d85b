/**
 * A caller's own words as events, escalations and spans have them: the model that it names, its session, its labels, what
 * policies say of its tools. Whoever puts a secret into one of them, one of ours or one of a provider's known form, finds
 * it masked there; what goes to the provider stays as it came.
 */
import { LRUCache } from 'lru-cache'
import { matcherOf } from '../inspection/follower.ts'
import { secretDetector } from '../inspection/secret-patterns.ts'
import type { PolicyResult } from '../policies/chain.ts'
import type { TextMatcher } from '../policies/kinds/kind.ts'
import { holdsSecret } from '../tokens/secret.ts'

/** No form of a secret is shorter. */
const shortest = '://:p@'.length
/** Models and sessions come again and again. */
const remembered = new LRUCache<string, string>({ max: 2000 })
let matcher: TextMatcher | null = null

/** Compiles the forms of secrets, which takes as long as a fifth of a start: whoever starts does it when it is ready. */
export function compileSecrets(): TextMatcher {
  matcher ??= matcherOf(secretDetector())
  return matcher
}

/** The text with `[OPENAI_KEY]` and the like in the place of secrets. */
export function withoutSecrets(text: string): string {
  if (text.length < shortest) return text
  const known = remembered.get(text)
  if (known !== undefined) return known
  const masked = mask(text)
  remembered.set(text, masked)
  return masked
}

function mask(text: string): string {
  let masked = ''
  let from = 0
  for (const { start, end, label } of compileSecrets().matches(text)) {
    masked += `${text.slice(from, start)}[${label}]`
    from = end
  }
  masked += text.slice(from)
  // One of ours is known by its checksum wherever it stands, also in the middle of a word.
  return holdsSecret(masked) ? '[GATEHOUSE_TOKEN]' : masked
}

/** The same of a text that may be missing. */
export const maskedOrNull = (text: string | null | undefined): string | null =>
  text === null || text === undefined ? null : withoutSecrets(text)

/** What a policy said, without the secrets that it may name things by. */
export const maskedResult = (result: PolicyResult): PolicyResult =>
  result.targets.length === 0 ? result : { ...result, targets: result.targets.map(withoutSecrets) }
