/** Every language that the translation knows. Adding one is its file and its line here. */
import { chat } from './chat.ts'
import { chatFeatures, chatMembers } from './chat-features.ts'
import { converse } from './converse.ts'
import { gemini } from './gemini.ts'
import type { Language } from './language.ts'
import { messages } from './messages.ts'
import type { LanguageName } from './neutral.ts'
import { responses } from './responses.ts'
import { responsesFeatures, responsesMembers } from './responses-features.ts'

export const languages: Readonly<Partial<Record<LanguageName, Language>>> = {
  chat: { provider: chat, caller: chat, features: chatFeatures, members: chatMembers },
  responses: { provider: responses, caller: responses, features: responsesFeatures, members: responsesMembers },
  messages,
  gemini,
  converse,
}
