/**
 * A signature that says whose it is, for languages whose field for it holds one opaque text: `gatehouse/messages:…`, and
 * `gatehouse/messages!:…` for thinking that only its provider can read. A caller brings it back as it came, and it is
 * opened for the provider that made it. It proves nothing by itself: the provider checks its own signature.
 */
import type { LanguageName } from './neutral.ts'

export interface Signature {
  language: LanguageName
  text: string
  redacted: boolean
}

const form = /^gatehouse\/(chat|responses|messages|gemini|converse)(!?):/

export const sealSignature = ({ language, text, redacted }: Signature): string =>
  `gatehouse/${language}${redacted ? '!' : ''}:${text}`

/** Null where it was not sealed here. */
export function openSignature(sealed: string): Signature | null {
  const match = form.exec(sealed)
  const language = languages.find((name) => name === match?.[1])
  if (match === null || language === undefined) return null
  return { language, text: sealed.slice(match[0].length), redacted: match[2] === '!' }
}

const languages: readonly LanguageName[] = ['chat', 'responses', 'messages', 'gemini', 'converse']
