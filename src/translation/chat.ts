/**
 * Chat completions, spoken by applications and by providers (OpenAI's API reference, Chat). How thoughts are said, which
 * the language itself does not know, is in `chat-thoughts.ts`; what it can say at all, in `chat-features.ts`.
 */
import { readChatAnswer, writeChatAnswer } from './chat-answers.ts'
import { chatFeatures, chatMembers } from './chat-features.ts'
import { readChatRequest } from './chat-read-request.ts'
import { ChatStreamReader } from './chat-read-stream.ts'
import { writeChatRequest } from './chat-write-request.ts'
import { ChatStreamWriter } from './chat-write-stream.ts'
import type { Language } from './language.ts'
import { readOpenAiError, writeOpenAiError } from './openai-words.ts'

export const chat = {
  provider: {
    name: 'chat',
    writeRequest: writeChatRequest,
    readAnswer: readChatAnswer,
    readError: readOpenAiError,
    streamReader: () => new ChatStreamReader(),
  },
  caller: {
    name: 'chat',
    readRequest: readChatRequest,
    writeAnswer: writeChatAnswer,
    writeError: writeOpenAiError,
    streamWriter: (asked) => new ChatStreamWriter(asked),
  },
  features: chatFeatures,
  members: chatMembers,
} satisfies Language
