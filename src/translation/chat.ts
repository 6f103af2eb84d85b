/**
 * Chat completions, spoken by applications and by providers (OpenAI's API reference, Chat). How thoughts are said, which
 * the language itself does not know, is in `chat-thoughts.ts`; what it can say at all, in `chat-features.ts`.
 */
import { readChatAnswer, writeChatAnswer } from './chat-answers.ts'
import { readChatRequest } from './chat-read-request.ts'
import { ChatStreamReader } from './chat-read-stream.ts'
import { writeChatRequest } from './chat-write-request.ts'
import { ChatStreamWriter } from './chat-write-stream.ts'
import type { CallerLanguage, ProviderLanguage } from './language.ts'
import { readOpenAiError, writeOpenAiError } from './openai-words.ts'

export const chat: CallerLanguage & ProviderLanguage = {
  name: 'chat',
  readRequest: readChatRequest,
  writeRequest: writeChatRequest,
  readAnswer: readChatAnswer,
  writeAnswer: writeChatAnswer,
  readError: readOpenAiError,
  writeError: writeOpenAiError,
  streamReader: () => new ChatStreamReader(),
  streamWriter: (asked) => new ChatStreamWriter(asked),
}
