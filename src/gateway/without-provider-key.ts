/**
 * Masks the credential of a provider in what its errors say. Some providers repeat the key that they refuse, whole or
 * with its middle starred out (`sk-proj-ab****yz`); it is the operator's, and no caller may see a part of it.
 */
import type { Provider } from '../providers/provider.ts'
import type { Exchange } from './exchange.ts'

type Credentials = Pick<Provider, 'apiKey' | 'headers'>
type Called = Pick<Exchange, 'model'>

const mask = '[PROVIDER_KEY]'
/** A shorter text is no credential, and masking it would change innocent words. */
const shortest = 8
/** How much of a credential tells it: with less, what follows a common prefix would be taken for it. */
const prefixLength = 12
/** Operators' headers that hold no secret, as a version or an organization's name. */
const credentialHeader = /auth|key|token|secret|cookie/i

const known = new WeakMap<Credentials, RegExp | null>()
const encoder = new TextEncoder()
const decoder = new TextDecoder()

/** The same text where nothing of the credential is in it. */
export function textWithoutKey({ model }: Called, text: string): string {
  if (model === null) return text
  let pattern = known.get(model.provider)
  if (pattern === undefined) {
    pattern = patternOf(model.provider)
    known.set(model.provider, pattern)
  }
  return pattern === null ? text : text.replace(pattern, mask)
}

/** The same bytes where nothing of the credential is in them. */
export function withoutKey(called: Called, bytes: Uint8Array): Uint8Array {
  const text = decoder.decode(bytes)
  const masked = textWithoutKey(called, text)
  return masked === text ? bytes : encoder.encode(masked)
}

function patternOf({ apiKey, headers }: Credentials): RegExp | null {
  const secrets = new Set<string>()
  // Of a credential in parts, as an access key and its secret, each part counts.
  for (const part of [apiKey ?? '', ...(apiKey ?? '').split(':')]) secrets.add(part)
  for (const [name, value] of Object.entries(headers)) {
    if (credentialHeader.test(name)) secrets.add(value.replace(/^(?:bearer|basic)\s+/i, ''))
  }
  const forms = [...secrets].filter(({ length }) => length >= shortest).flatMap(formsOf)
  return forms.length === 0 ? null : new RegExp(forms.join('|'), 'g')
}

/** The whole of it, as it is and as JSON and addresses write it; its beginning, and its ends with stars between. */
function formsOf(secret: string): string[] {
  const whole = [...new Set([secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret)])]
  const forms = whole.toSorted((one, other) => other.length - one.length).map(escaped)
  forms.push(`${escaped(secret.slice(0, 4))}[\\w-]*(?:[*•]{3,}|…|\\.{3,})[\\w*•.…-]*`)
  if (secret.length >= 2 * prefixLength) forms.push(`${escaped(secret.slice(0, prefixLength))}[\\w-]*`)
  return forms
}

const escaped = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')
