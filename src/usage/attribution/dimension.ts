/** Dimensions of attribution: what of a request its spend is attributed to (usage/README.md, Attribution). */
import { createHash } from 'node:crypto'
import { Failure } from '../../failure.ts'

export const sourceKinds = ['token_metadata', 'header', 'body_metadata', 'jwt_claim'] as const
export type SourceKind = (typeof sourceKinds)[number]

export interface Dimension {
  readonly name: string
  readonly source: { readonly kind: SourceKind; readonly key: string }
  /** Null allows every value. */
  readonly values: ReadonlySet<string> | null
  readonly required: boolean
  /** The most values that a budget for each value keeps apart in a window. */
  readonly maxValues: number
}

/** The values of a request by the name of their dimension. A dimension without a value is absent. */
export type Attributed = Readonly<Record<string, string>>

/** Characters of a value. */
export const longestValue = 200
/** Characters of a value as it comes: composing a text takes time that grows with the square of its length. */
export const longestRawValue = 4 * longestValue
/** Dimensions of an organization. */
export const mostDimensions = 8

/** What the values of a request are read from. */
export interface AttributedRequest {
  readonly headers: { get(name: string): string | null }
  /** The body as an object, if it is one. */
  readonly body: Readonly<Record<string, unknown>> | null
  readonly token: {
    readonly metadata: Readonly<Record<string, string>>
    readonly metadataTrust: 'none' | 'caller'
  }
  /** Claims of the caller's JWT by their names; null for the holder of a secret. */
  readonly claims: Readonly<Record<string, string>> | null
}

/** Throws `attribution_refused` for a value that is missing and required, not allowed, too long, or no plain text. */
export function attribute(dimensions: readonly Dimension[], request: AttributedRequest): Attributed | null {
  let found: Record<string, string> | null = null
  for (const dimension of dimensions) {
    const value = foundValue(dimension, request)
    if (value === null) {
      if (dimension.required) throw missing(dimension, request)
      continue
    }
    requireAllowed(dimension, value)
    found ??= {}
    found[dimension.name] = value
  }
  return found
}

function foundValue(dimension: Dimension, request: AttributedRequest): string | null {
  const value = saidValue(dimension, request)
  if (value === null) return null
  if (value.length > longestRawValue) throw tooLong(dimension)
  const plain = plainValue(value)
  return plain === '' ? null : plain
}

/**
 * A value in the one form in which accounts and allowed values know it, wherever it comes from: without white space
 * around it, and composed (Unicode NFC), so that what looks the same is the same.
 */
export const plainValue = (value: string): string => value.trim().normalize()

function saidValue({ source: { kind, key } }: Dimension, request: AttributedRequest): string | null {
  const { headers, body, token, claims } = request
  if (kind === 'token_metadata') return textOf(token.metadata, key)
  if (kind === 'jwt_claim') return textOf(claims, key)
  // These are the caller's own words.
  if (token.metadataTrust !== 'caller') return null
  if (kind === 'header') return headerText(headers.get(key))
  // A form writes a member of an object with brackets.
  return textOf(body?.metadata, key) ?? textOf(body, `metadata[${key}]`)
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** A header comes as one character a byte (RFC 9110, 5.5). Bytes that are UTF-8 are read as such. */
function headerText(value: string | null): string | null {
  if (value === null) return null
  if (!/[\u0080-\u00ff]/.test(value)) return value
  try {
    return utf8.decode(Buffer.from(value, 'latin1'))
  } catch {
    // It is ISO 8859-1, as older clients write it.
    return value
  }
}

function textOf(object: unknown, key: string): string | null {
  if (typeof object !== 'object' || object === null || !Object.hasOwn(object, key)) return null
  const value: unknown = Reflect.get(object, key)
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  return typeof value === 'string' ? value : null
}

function tooLong({ name, source }: Dimension): Failure {
  const message = `The value of ${name} is longer than ${longestValue} characters: shorten ${sourceWords(source)}`
  return new Failure('attribution_refused', { message, param: name })
}

function requireAllowed(dimension: Dimension, value: string): void {
  const { name, source, values } = dimension
  if (value.length > longestValue) throw tooLong(dimension)
  // Halves of surrogate pairs have no UTF-8: different values would have one digest.
  if (/\p{Cc}/u.test(value) || !value.isWellFormed()) {
    const message = `The value of ${name} holds a control character or an incomplete one: take it out of ${sourceWords(source)}`
    throw new Failure('attribution_refused', { message, param: name })
  }
  if (values?.has(value)) return
  // A header that is sent twice comes as one with a comma (RFC 9110, 5.3): it names no one account.
  if (source.kind === 'header' && value.includes(',')) {
    const message = `The value of ${name} must be one value: send the header ${source.key} once and without a comma, or allow a value with a comma in the dimension's values`
    throw new Failure('attribution_refused', { message, param: name })
  }
  if (values === null) return
  const message = `The value of ${name} is not among those that the organization allows: correct ${sourceWords(source)}`
  throw new Failure('attribution_refused', { message, param: name })
}

function missing({ name, source }: Dimension, { token }: AttributedRequest): Failure {
  const ofCaller = source.kind === 'header' || source.kind === 'body_metadata'
  const untrusted = ofCaller && token.metadataTrust !== 'caller'
  const message = untrusted
    ? `A request must have a value of ${name}, and the token may not name one: use a token that was made with metadata_trust caller, and send ${sourceWords(source)}`
    : `A request must have a value of ${name}: set ${sourceWords(source)}`
  return new Failure('attribution_refused', { message, param: name })
}

/** Where a value comes from, in words. */
function sourceWords({ kind, key }: Dimension['source']): string {
  if (kind === 'token_metadata') return `the member ${key} of the token's metadata`
  if (kind === 'header') return `the header ${key}`
  if (kind === 'body_metadata') return `the member ${key} of metadata in the body`
  return `the claim ${key} of the JWT, which its workload identity must name in its attribution`
}

/** Stands for a value in names of accounts: its length is bounded, and its characters are safe. */
export const valueDigest = (value: string): string => createHash('sha256').update(value).digest('hex').slice(0, 32)

/** The digest of the value that a limit with `per` counts a request by. Requests without a value are counted together. */
export const digestFor = (per: string, values: Attributed | null): string =>
  valueDigest(values !== null && Object.hasOwn(values, per) ? (values[per] ?? '') : '')
