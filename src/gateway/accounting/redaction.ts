/**
 * Masks secrets in caller-chosen text of events, escalations and spans: model, session, labels and the policy messages
 * about tools. It masks Gatehouse secrets and the known forms of provider secrets. What goes to the provider is
 * unchanged.
 */
import { LRUCache } from 'lru-cache'
import { holdsSecret } from '../../identity/secret.ts'
import { secretDetector } from '../../inspection/detectors/secrets/secret-patterns.ts'
import { matcherOf } from '../../inspection/detectors/text-matcher.ts'
import type { TextMatcher } from '../../policies/kinds/kind.ts'

/** Every form of a secret is at least this long. */
const shortest = '://:p@'.length
/** A longer name belongs to no model or session. A fixed text replaces it, which bounds the record and the work. */
const longest = 8192
export const overlongText = '[TOO_LONG]'
/** Models and sessions repeat. */
const cache = new LRUCache<string, string>({ max: 2000 })
/** Longer texts are not cached, which bounds the cache. */
export const longestCached = 1024
let matcher: TextMatcher | null = null

/** Compiles the secret patterns. This takes a fifth of the start time, so a process calls it once it is ready. */
export function compileSecrets(): TextMatcher {
  matcher ??= matcherOf(secretDetector())
  return matcher
}

/** Replaces each secret by its label, for example `[OPENAI_KEY]`. */
export function maskSecrets(text: string): string {
  if (text.length < shortest) return text
  if (text.length > longest) return overlongText
  const known = cache.get(text)
  if (known !== undefined) return known
  const masked = mask(text)
  if (text.length <= longestCached) cache.set(text, masked)
  return masked
}

/** Words in a name are joined (`read_sk-…`); in a text a secret stands alone. */
const joined =
  /[_-](?=(?:sk|rk|gsk|gh[pousr]|github_pat|gl[a-z]{2,4}|hf|api_org|xai|pplx|r8|nvapi|npm|pypi|xox[a-z]|xapp|whsec|GOCSPX)[_-]|AKIA|ASIA|ABIA|ACCA|AIza|ya29\.|SG\.|eyJ)/g

function mask(text: string): string {
  const alone = replaced(text, text)
  const masked = replaced(alone, alone.replace(joined, ' '))
  // The checksum identifies a Gatehouse secret anywhere, also inside a word.
  return holdsSecret(masked) ? '[GATEHOUSE_TOKEN]' : masked
}

/** Replaces in `text` what is found in `read`, which has the same length and may differ at word joints. */
function replaced(text: string, read: string): string {
  let result = ''
  let from = 0
  for (const { start, end, label } of compileSecrets().matches(read)) {
    result += `${text.slice(from, start)}[${label}]`
    from = end
  }
  return result + text.slice(from)
}

/** As `maskSecrets`, for a text that may be missing. */
export const maskSecretsOrNull = (text: string | null | undefined): string | null =>
  text === null || text === undefined ? null : maskSecrets(text)
