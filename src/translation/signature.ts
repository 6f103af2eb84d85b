/**
 * Signatures of one provider in the language of another. What signs thinking is opaque and only its provider can check
 * it, but it has to come back to that provider in a later turn, through a caller whose language does not say whose it is.
 * So a foreign signature goes out marked with its language and, where it belongs to a tool call, with that call's id:
 *
 *     gatehouse.LANGUAGE.CALL.SIGNATURE
 *
 * CALL is the id in base64url, empty for a thought. One without the mark is of the language it stands in. The mark has
 * only characters that encoded bytes have too, because that is what clients and policies expect of a signature.
 */
import type { LanguageName } from './neutral.ts'

export interface MarkedSignature {
  language: LanguageName
  /** The tool call that it belongs to; null where it is a thought's. */
  callId: string | null
  signature: string
}

const mark = /^gatehouse\.(chat|responses|messages|gemini|converse)\.([\w-]*)\.(.*)$/s
const names: readonly LanguageName[] = ['chat', 'responses', 'messages', 'gemini', 'converse']

export const markSignature = ({ language, callId, signature }: MarkedSignature): string =>
  `gatehouse.${language}.${callId === null ? '' : Buffer.from(callId).toString('base64url')}.${signature}`

/** null where the text has no mark. */
export function readMarkedSignature(text: string): MarkedSignature | null {
  const [, name, call, signature] = mark.exec(text) ?? []
  const language = names.find((known) => known === name)
  if (language === undefined || call === undefined || signature === undefined) return null
  return { language, callId: call === '' ? null : Buffer.from(call, 'base64url').toString(), signature }
}
