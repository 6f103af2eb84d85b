/** Every language that the translation knows. Adding one is its file and its line here. */
import { chat } from '../chat/translation.ts'
import { converse } from '../converse/translation.ts'
import { gemini } from '../gemini/translation.ts'
import { messages } from '../messages/translation.ts'
import type { LanguageName } from '../neutral.ts'
import { responses } from '../responses/translation.ts'
import type { Language } from '../translation-language.ts'

export const languages: Readonly<Record<LanguageName, Language>> = {
  chat,
  responses,
  messages,
  gemini,
  converse,
}
