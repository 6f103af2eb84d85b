/** Distinguishes a credential from text of the same form: a manual's placeholder, or words in its place. */

/** Placeholders that manuals write for a credential. */
const placeholder =
  /x{5}|example|placeholder|change.?me|redacted|dummy|your.?(?:api|access|secret|auth|own|key|token|pass)|(?:token|string|key|secret)here/i

/** Bits for each character: random text has more, a repeated letter has none. Short texts cannot have many. */
const leastEntropy = (length: number): number => (length < 28 ? 2.5 : 3)

/** Whether a text of a credential's form is one: it is not an example's, and its characters vary. */
export const isSecret = (text: string): boolean =>
  !placeholder.test(text) && entropyOf(text) >= leastEntropy(text.length) && !isSequence(text)

/**
 * Whether a text is random letters and digits and not words: in `sk-toggleable__label-arrow` hardly any character is
 * of another class than its neighbour, in random text every second one is.
 */
export const isRandom = (text: string): boolean => {
  let changes = 0
  let digits = 0
  let before = ''
  for (const character of text) {
    const kind = classOf(character)
    if (kind === 'digit') digits++
    if (kind !== 'other' && before !== 'other' && before !== '' && kind !== before) changes++
    before = kind
  }
  return isSecret(text) && digits > 1 && changes >= text.length * leastChanges
}

const leastChanges = 0.15

/** The same for a value after a name: `api_key = "…"`. */
export const holdsRandom = (text: string): boolean => isRandom(writtenValue(text))

/** The same for a value whose form alone is enough. */
export const holdsSecret = (text: string): boolean => isSecret(writtenValue(text))

/** The text after the first assignment sign, and after `Bearer`. */
const writtenValue = (text: string): string =>
  text
    .replace(/^[^:=?|>,]*[:=?|>,]+["'`\s]*/, '')
    .split(/\s/)
    .at(-1) ?? ''

/** Whether the password in an address is a real one: not a placeholder, and not a variable. */
export const holdsPassword = (text: string): boolean => {
  const password = text.slice(text.indexOf(':', 3) + 1, -1)
  return !placeholder.test(password) && !commonStandIn.test(password)
}

const commonStandIn =
  /^(?:pass|passwd|password|pwd|pw|secret|token|\$\w+|\$?\{[^}]*\}+|\$\(.*\)|<.*>|\[.*\]|%\w+%?|[*.x]+)$/i

function classOf(character: string): 'lower' | 'upper' | 'digit' | 'other' {
  if (character >= 'a' && character <= 'z') return 'lower'
  if (character >= 'A' && character <= 'Z') return 'upper'
  return character >= '0' && character <= '9' ? 'digit' : 'other'
}

/** Shannon's entropy of the characters, in bits for each. */
function entropyOf(text: string): number {
  const counts = new Map<string, number>()
  for (const character of text) counts.set(character, (counts.get(character) ?? 0) + 1)
  let bits = 0
  for (const count of counts.values()) bits -= (count / text.length) * Math.log2(count / text.length)
  return bits
}

/** Whether half of it counts up: `abcdefgh12345678`. */
function isSequence(text: string): boolean {
  let steps = 0
  for (let index = 1; index < text.length; index++) {
    if (text.charCodeAt(index) === text.charCodeAt(index - 1) + 1) steps++
  }
  return steps * 2 > text.length
}
