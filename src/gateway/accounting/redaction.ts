/**
 * A caller's own words as events, escalations and spans have them: the model that it names, its session, its labels, what
 * policies say of its tools. Whoever puts a secret into one of them, one of ours or one of a provider's known form, finds
 * it masked there; what goes to the provider stays as it came.
 */
import { LRUCache } from 'lru-cache'
import { holdsSecret } from '../../identity/secret.ts'
import { secretDetector } from '../../inspection/detectors/secrets/secret-patterns.ts'
import { matcherOf } from '../../inspection/detectors/text-matcher.ts'
import type { TextMatcher } from '../../policies/kinds/kind.ts'

/** No form of a secret is shorter. */
const shortest = '://:p@'.length
/** A longer name is nobody's: what stands in its place keeps records small and the thread free. */
const longest = 8192
export const tooLong = '[TOO_LONG]'
/** Models and sessions come again and again. */
const remembered = new LRUCache<string, string>({ max: 2000 })
/** What is kept of each stays small. */
export const longestRemembered = 1024
let matcher: TextMatcher | null = null

/** Compiles the forms of secrets, which takes as long as a fifth of a start: whoever starts does it when it is ready. */
export function compileSecrets(): TextMatcher {
  matcher ??= matcherOf(secretDetector())
  return matcher
}

/** The text with `[OPENAI_KEY]` and the like in the place of secrets. */
export function withoutSecrets(text: string): string {
  if (text.length < shortest) return text
  if (text.length > longest) return tooLong
  const known = remembered.get(text)
  if (known !== undefined) return known
  const masked = mask(text)
  if (text.length <= longestRemembered) remembered.set(text, masked)
  return masked
}

/** In a name, words stand beside each other (`read_sk-…`), where in a text a secret stands alone. */
const joined =
  /[_-](?=(?:sk|rk|gsk|gh[pousr]|github_pat|gl[a-z]{2,4}|hf|api_org|xai|pplx|r8|nvapi|npm|pypi|xox[a-z]|xapp|whsec|GOCSPX)[_-]|AKIA|ASIA|ABIA|ACCA|AIza|ya29\.|SG\.|eyJ)/g

function mask(text: string): string {
  const alone = replaced(text, text)
  const masked = replaced(alone, alone.replace(joined, ' '))
  // One of ours is known by its checksum wherever it stands, also in the middle of a word.
  return holdsSecret(masked) ? '[GATEHOUSE_TOKEN]' : masked
}

/** The text with the labels of the secrets that are found in `read`, which is as long and may differ at joints. */
function replaced(text: string, read: string): string {
  let result = ''
  let from = 0
  for (const { start, end, label } of compileSecrets().matches(read)) {
    result += `${text.slice(from, start)}[${label}]`
    from = end
  }
  return result + text.slice(from)
}

/** The same of a text that may be missing. */
export const maskedOrNull = (text: string | null | undefined): string | null =>
  text === null || text === undefined ? null : withoutSecrets(text)
