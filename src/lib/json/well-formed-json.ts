/**
 * JSON in which every text is well-formed Unicode. A caller's JSON may contain half of a surrogate pair (`"\ud800"`),
 * which JavaScript keeps and writes again. SQLite turns it into invalid UTF-8, and libSQL's native part ends the
 * process when it reads that. Each such half becomes U+FFFD, as with `toWellFormed`.
 */

/** The JSON of an object or array; what is well-formed already costs one look through the text. */
export function wellFormedJson(value: object): string {
  const text = JSON.stringify(value)
  // A whole pair is written as itself, and only halves as escapes (ECMA-262, QuoteJSONString).
  return text.includes('\\ud') ? text.replace(escapes, (each) => (each.length > 2 ? '\ufffd' : each)) : text
}

/** Every escape, so that `\\ud800`, a backslash before letters, is not taken for one. */
const escapes = /\\(?:ud[89a-f][0-9a-f]{2}|.)/g
