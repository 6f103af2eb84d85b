/** The languages of the translation, a line each. */
import { gemini } from './gemini.ts'
import type { Language } from './language.ts'
import { messages } from './messages.ts'
import type { LanguageName } from './neutral.ts'

export const languages: Readonly<Partial<Record<LanguageName, Language>>> = {
  gemini,
  messages,
}
