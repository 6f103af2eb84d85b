/** Every language that the translation knows. Adding one is its file and its line here. */
import { chat } from './chat.ts'
import { converse } from './converse.ts'
import { gemini } from './gemini.ts'
import type { Language } from './language.ts'
import { messages } from './messages.ts'
import type { LanguageName } from './neutral.ts'
import { responses } from './responses.ts'

export const languages: Readonly<Record<LanguageName, Language>> = {
  chat,
  responses,
  messages,
  gemini,
  converse,
}
