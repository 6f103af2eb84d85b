/**
 * Masks the provider's credential in its errors. Some providers repeat a refused key, whole or with its middle starred
 * out (`sk-proj-ab****yz`). The key belongs to the operator, and no caller may see any part. A key in another encoding,
 * such as base64, is not found.
 */
import { type Provider, secretsIn } from '../../providers/provider.ts'
import type { Exchange, ResolvedModel } from '../exchange.ts'

type Credentials = Pick<Provider, 'apiKey' | 'headers' | 'keys'>
type KeyedProvider = Pick<Exchange, 'model'>

const mask = '[PROVIDER_KEY]'
/** A shorter text is no credential, and masking it would change unrelated words. */
const shortest = 8
/** How much of a credential identifies it; with less, other text with a common prefix would match. */
const prefixLength = 12
/** Excludes operators' headers without secrets, such as a version or an organization name. */
const credentialHeader = /auth|key|token|secret|cookie/i

interface Patterns {
  /** Matches the credential, in part or whole. */
  readonly any: RegExp
  /** Bytes of which some occur in every text that holds the credential or its beginning. */
  readonly fragments: readonly Buffer[]
}

const known = new WeakMap<Credentials, Patterns | null>()
const encoder = new TextEncoder()
const decoder = new TextDecoder()

/** Returns the same text when nothing of the credential is in it. */
export function maskKeyInText(called: KeyedProvider, text: string): string {
  const any = patternsOf(called)?.any
  if (any === undefined) return text
  const unescaped = text.includes('\\') ? withoutEscapes(text) : text
  const masked = unescaped.replace(any, mask)
  return masked === unescaped ? text : masked
}

/** Returns the same bytes when nothing of the credential is in them. */
export function maskKey(called: KeyedProvider, bytes: Uint8Array): Uint8Array {
  const text = decoder.decode(bytes)
  const masked = maskKeyInText(called, text)
  return masked === text ? bytes : encoder.encode(masked)
}

/**
 * As `maskKey`, for answers that are no errors: masks only the whole credential or its beginning as it is. What
 * merely resembles a shortened key may be the model's own text.
 */
export function maskWholeKey(called: KeyedProvider, bytes: Uint8Array): Uint8Array {
  const patterns = patternsOf(called)
  return patterns !== null && holdsFragment(bytes, patterns.fragments) ? maskKey(called, bytes) : bytes
}

function holdsFragment(bytes: Uint8Array, fragments: readonly Buffer[]): boolean {
  for (let index = 0; index < fragments.length; index++) {
    const fragment = fragments[index]
    if (fragment !== undefined && includes.call(bytes, fragment)) return true
  }
  return false
}

/** Searches any bytes; to make a buffer of each frame first costs more than the search. */
const { includes } = Buffer.prototype

/** The same JSON with unneeded escapes of ASCII characters decoded. */
const withoutEscapes = (text: string): string =>
  text.replace(/\\(?:u00([2-7][0-9a-f])|.)/gis, (written: string, code: string | undefined) => {
    const character = code === undefined ? written.slice(1) : String.fromCharCode(Number.parseInt(code, 16))
    const isNeedless = code === undefined ? character === '/' : character !== '"' && character !== '\\'
    return isNeedless ? character : written
  })

function patternsOf({ model }: KeyedProvider): Patterns | null {
  if (model === null) return null
  let patterns = known.get(model.provider)
  if (patterns === undefined) {
    patterns = patternsFor(model)
    known.set(model.provider, patterns)
  }
  return patterns
}

function patternsFor({ kind, provider: { apiKey, headers, keys } }: ResolvedModel): Patterns | null {
  // Each part of a credential in parts counts, as of an access key and its secret.
  const found = new Set(
    [apiKey, ...(keys ?? []).map((each) => each.apiKey)].flatMap((key) => [...secretsIn(kind, key)]),
  )
  for (const [name, value] of Object.entries(headers)) {
    if (credentialHeader.test(name)) found.add(value.replace(/^(?:bearer|basic)\s+/i, ''))
  }
  const secrets = [...found].filter(({ length }) => length >= shortest)
  if (secrets.length === 0) return null
  const fragments = new Set(
    secrets.flatMap((secret) => wholeForms(secret).map((form) => form.slice(0, identifyingLength(secret)))),
  )
  return {
    any: new RegExp(secrets.flatMap(formsOf).join('|'), 'g'),
    fragments: [...fragments].map((fragment) => Buffer.from(fragment)),
  }
}

/** The length of the beginning that identifies a credential; all of a short one. */
const identifyingLength = ({ length }: string): number => (length >= 2 * prefixLength ? prefixLength : length)

/** The whole credential, plain and as JSON and URLs write it. */
const wholeForms = (secret: string): string[] => [
  ...new Set([secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret)]),
]

/** The whole credential in each form, its beginning, and its two ends with stars between. */
function formsOf(secret: string): string[] {
  const forms = wholeForms(secret)
    .toSorted((one, other) => other.length - one.length)
    .map(escaped)
  forms.push(`${escaped(secret.slice(0, 4))}[\\w-]*(?:[*•]{3,}|…|\\.{3,})[\\w*•.…-]*`)
  if (secret.length >= 2 * prefixLength) forms.push(`${escaped(secret.slice(0, prefixLength))}[\\w-]*`)
  return forms
}

const escaped = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')
