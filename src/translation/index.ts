/** The languages of the translation, a line each. */
import { converse } from './converse.ts'
import type { Language } from './language.ts'
import type { LanguageName } from './neutral.ts'

export const languages: Readonly<Partial<Record<LanguageName, Language>>> = {
  converse,
}
