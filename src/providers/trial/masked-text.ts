/** Takes secrets out of a text of a provider, which may repeat the key that it was sent, whole or in part. */

/** As long as an error is shown. */
const longest = 300
/** So many characters that a word has in common with a secret's beginning or end make it a part of the secret. */
const telling = 4

/** The text on one line, at most 300 characters, with `***` for what is a secret or looks like a part of one. */
export function maskedText(text: string, secrets: readonly string[]): string {
  const parts = secrets
    .flatMap((secret) => [secret, ...secret.split(/[\s:]+/)])
    .filter(({ length }) => length >= telling)
  let masked = text.replaceAll(/[\s\p{Cc}]+/gu, ' ').trim()
  for (const secret of parts.toSorted((one, other) => other.length - one.length)) {
    masked = masked.replaceAll(secret, '***')
  }
  masked = masked.replaceAll(/[^\s"'`,;:(){}<>[\]]+/g, (word) => (isPart(word, parts) ? '***' : word))
  return masked.length > longest ? `${masked.slice(0, longest)}…` : masked
}

/** Providers show a key as `sk-ab***yz`, or only its beginning. */
function isPart(word: string, secrets: readonly string[]): boolean {
  if (word.length <= telling) return false
  return secrets.some(
    (secret) =>
      secret.length > telling &&
      (word.startsWith(secret.slice(0, telling)) || word.replace(/[.!?]+$/, '').endsWith(secret.slice(-telling))),
  )
}
