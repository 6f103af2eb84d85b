/**
 * Thoughts of one provider in the language of another. A signature of thinking is opaque and only its provider can
 * check it, but it must come back to that provider in a later turn, through a caller whose language has no member for
 * the provider's name. So everything that another provider signed, or thought without signing, goes out with a mark:
 *
 * gatehouse.LANGUAGE.CALL.SIGNATURE: of a thought, CALL empty; of a tool call, CALL its id in base64url
 * gatehouse.LANGUAGE-hidden.CALL.SIGNATURE: thinking that only its provider can read
 *
 * A signature without the mark belongs to the language it is in. The mark has only characters of encoded bytes,
 * because clients and policies expect that of a signature. It proves nothing by itself: the provider checks its own
 * signature.
 *
 * A turn that goes to a provider of the caller's own language leaves out marked blocks (`strip-foreign-reasoning.ts`).
 */

import { type LanguageName, languageNames } from '../neutral.ts'
import { markBegins } from '../reading/texts/signed-reasoning.ts'

export interface MarkedSignature {
  language: LanguageName
  /** The tool call that it belongs to; null for a thought. */
  callId: string | null
  /** Thinking that only its provider can read, in place of a signature. */
  redacted: boolean
  /** Empty if the thought was not signed. */
  signature: string
}

const mark = new RegExp(`^gatehouse\\.(${languageNames.join('|')})(-hidden)?\\.([\\w-]*)\\.(.*)$`, 's')

export const markSignature = ({ language, callId, redacted, signature }: MarkedSignature): string => {
  const call = callId === null ? '' : Buffer.from(callId).toString('base64url')
  return `${markBegins}${language}${redacted ? '-hidden' : ''}.${call}.${signature}`
}

/** null if the text has no mark. */
export function readMarkedSignature(text: string): MarkedSignature | null {
  if (!text.startsWith(markBegins)) return null
  const [, name, hidden, call = '', signature = ''] = mark.exec(text) ?? []
  const language = languageNames.find((known) => known === name)
  if (language === undefined) return null
  const callId = call === '' ? null : Buffer.from(call, 'base64url').toString()
  return { language, callId, redacted: hidden !== undefined, signature }
}

/** A thought's opaque part, as written in the one field that a language has for it. */
export interface Opaque {
  signature: string | null
  redacted: string | null
  language: LanguageName | null
}

/** The value that goes out in the language `own`: its own unchanged, another's marked; null if its own has none. */
export function writtenOpaque({ signature, redacted, language }: Opaque, own: LanguageName): string | null {
  if (language === null || language === own) return redacted ?? signature
  return markSignature({ language, callId: null, redacted: redacted !== null, signature: redacted ?? signature ?? '' })
}

/** A provider's value in its own language. `redacted`: thinking that only the provider can read. */
export const ownOpaque = (text: string | null, own: LanguageName, redacted: boolean): Opaque => {
  const said = text === '' ? null : text
  return { signature: redacted ? null : said, redacted: redacted ? said : null, language: own }
}

/** A value that a caller brought back in the language `own`; it may be another language's, marked. */
export function broughtOpaque(text: string | null, own: LanguageName, redacted: boolean): Opaque {
  const marked = text === null ? null : readMarkedSignature(text)
  return marked === null
    ? ownOpaque(text, own, redacted)
    : ownOpaque(marked.signature, marked.language, marked.redacted)
}
