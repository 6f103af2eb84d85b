/**
 * Names of models as callers, the catalog and policies write them.
 *
 * A provider may take the name into its address, and a server in front of it may decode that address once more. So no
 * name holds what can leave its place there, for any kind of provider: a dot segment, an empty segment, a percent
 * sign, a backslash, a question mark, a hash, white space or a control character (RFC 3986 sections 3.3 and 5.2.4).
 */

/** The names of one model. */
export interface ModelNames {
  /** The name that filters must allow and policies read. */
  readonly id: string
  /** Other names of the same model: a denial of any of them counts. */
  readonly aliases: readonly string[]
}

/** As long as the ARN of a model at AWS Bedrock may be. */
const longest = 2048
const forbidden = /[\p{Cc}\s\\%?#]/u
/** Some servers cut a segment at its first semicolon before they resolve it. */
const dotSegment = /^\.{1,2}(?:;|$)/

export const isModelName = (name: string): boolean =>
  name.length <= longest &&
  name.isWellFormed() &&
  !forbidden.test(name) &&
  name.split('/').every((segment) => segment !== '' && !dotSegment.test(segment))

/** The check as zod's `refine` takes it. */
export const validModelName = [
  isModelName,
  'Leave out empty segments, the segments . and .., white space, and the characters % \\ ? #',
] as const

/** Adds each name in lower case: some providers take a name in any case. */
export function namesInAnyCase({ id, aliases }: ModelNames): ModelNames {
  const lower = [id, ...aliases]
    .map((name) => name.toLowerCase())
    .filter((name) => name !== id && !aliases.includes(name))
  return lower.length === 0 ? { id, aliases } : { id, aliases: [...aliases, ...lower] }
}

/** What Google's APIs take before a model's name. */
export const collection = 'models/'

/** The name without its collection: `models/gemini-3-pro` is `gemini-3-pro`. */
export const withoutCollection = (name: string): string =>
  name.startsWith(collection) ? name.slice(collection.length) : name
