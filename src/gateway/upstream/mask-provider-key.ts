/**
 * Masks the credential of a provider in what its errors say. Some providers repeat the key that they refuse, whole or
 * with its middle starred out (`sk-proj-ab****yz`); it is the operator's, and no caller may see a part of it. A key that a
 * provider encodes, as base64 above all, is not found.
 */
import type { Provider } from '../../providers/provider.ts'
import type { Exchange } from '../exchange.ts'

type Credentials = Pick<Provider, 'apiKey' | 'headers'>
type Called = Pick<Exchange, 'model'>

const mask = '[PROVIDER_KEY]'
/** A shorter text is no credential, and masking it would change innocent words. */
const shortest = 8
/** How much of a credential tells it: with less, what follows a common prefix would be taken for it. */
const prefixLength = 12
/** Operators' headers that hold no secret, as a version or an organization's name. */
const credentialHeader = /auth|key|token|secret|cookie/i

interface Patterns {
  /** Whatever tells the credential, in part or whole. */
  readonly any: RegExp
  /** Bytes of which some stand in each text that holds the credential itself, or how it begins. */
  readonly fragments: readonly Buffer[]
}

const known = new WeakMap<Credentials, Patterns | null>()
const encoder = new TextEncoder()
const decoder = new TextDecoder()

/** The same text where nothing of the credential is in it. */
export function textWithoutKey(called: Called, text: string): string {
  const any = patternsOf(called)?.any
  if (any === undefined) return text
  const unescaped = text.includes('\\') ? withoutEscapes(text) : text
  const masked = unescaped.replace(any, mask)
  return masked === unescaped ? text : masked
}

/** The same bytes where nothing of the credential is in them. */
export function withoutKey(called: Called, bytes: Uint8Array): Uint8Array {
  const text = decoder.decode(bytes)
  const masked = textWithoutKey(called, text)
  return masked === text ? bytes : encoder.encode(masked)
}

/**
 * As `withoutKey`, for what is no error: it is decoded only where the credential, or how it begins, stands in it as it
 * is. Whatever only looks like a shortened key may be the model's own text.
 */
export function withoutWholeKey(called: Called, bytes: Uint8Array): Uint8Array {
  const patterns = patternsOf(called)
  return patterns !== null && holdsFragment(bytes, patterns.fragments) ? withoutKey(called, bytes) : bytes
}

function holdsFragment(bytes: Uint8Array, fragments: readonly Buffer[]): boolean {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
  for (let index = 0; index < fragments.length; index++) {
    const fragment = fragments[index]
    if (fragment !== undefined && buffer.includes(fragment)) return true
  }
  return false
}

/** The same JSON, with the characters of ASCII as they are that it writes as escapes and need not. */
const withoutEscapes = (text: string): string =>
  text.replace(/\\(?:u00([2-7][0-9a-f])|.)/gis, (written: string, code: string | undefined) => {
    const character = code === undefined ? written.slice(1) : String.fromCharCode(Number.parseInt(code, 16))
    const isNeedless = code === undefined ? character === '/' : character !== '"' && character !== '\\'
    return isNeedless ? character : written
  })

function patternsOf({ model }: Called): Patterns | null {
  if (model === null) return null
  let patterns = known.get(model.provider)
  if (patterns === undefined) {
    patterns = patternsFor(model.provider)
    known.set(model.provider, patterns)
  }
  return patterns
}

function patternsFor({ apiKey, headers }: Credentials): Patterns | null {
  const found = new Set<string>()
  // Of a credential in parts, as an access key and its secret, each part counts.
  for (const part of [apiKey ?? '', ...(apiKey ?? '').split(':')]) found.add(part)
  for (const [name, value] of Object.entries(headers)) {
    if (credentialHeader.test(name)) found.add(value.replace(/^(?:bearer|basic)\s+/i, ''))
  }
  const secrets = [...found].filter(({ length }) => length >= shortest)
  if (secrets.length === 0) return null
  const fragments = new Set(
    secrets.flatMap((secret) => wholeForms(secret).map((form) => form.slice(0, tellingLength(secret)))),
  )
  return {
    any: new RegExp(secrets.flatMap(formsOf).join('|'), 'g'),
    fragments: [...fragments].map((fragment) => Buffer.from(fragment)),
  }
}

/** How much of the beginning of a credential tells it; all of a short one. */
const tellingLength = ({ length }: string): number => (length >= 2 * prefixLength ? prefixLength : length)

/** The whole of it, as it is and as JSON and addresses write it. */
const wholeForms = (secret: string): string[] => [
  ...new Set([secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret)]),
]

/** The whole of it in each form; its beginning, and its ends with stars between. */
function formsOf(secret: string): string[] {
  const forms = wholeForms(secret)
    .toSorted((one, other) => other.length - one.length)
    .map(escaped)
  forms.push(`${escaped(secret.slice(0, 4))}[\\w-]*(?:[*•]{3,}|…|\\.{3,})[\\w*•.…-]*`)
  if (secret.length >= 2 * prefixLength) forms.push(`${escaped(secret.slice(0, prefixLength))}[\\w-]*`)
  return forms
}

const escaped = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')
