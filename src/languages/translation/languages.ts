/** Every language that the translation knows. To add one: its file and its line here. */
import { chat } from '../chat/translation/language.ts'
import { converse } from '../converse/language.ts'
import { gemini } from '../gemini/translation/language.ts'
import { messages } from '../messages/translation/language.ts'
import type { LanguageName } from '../neutral.ts'
import { responses } from '../responses/translation/language.ts'
import type { Language } from '../translation-language.ts'

export const languages: Readonly<Record<LanguageName, Language>> = {
  chat,
  responses,
  messages,
  gemini,
  converse,
}
