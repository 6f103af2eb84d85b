/**
 * Chat completions, spoken by applications and by providers (OpenAI's API reference, Chat). How thoughts are said, which
 * the language itself does not know, is in `reasoning.ts`; what it can say at all, in `features.ts`.
 */

import { readOpenAiError, writeOpenAiError } from '../translation/openai-shared.ts'
import type { Language } from '../translation-language.ts'
import { readChatAnswer, writeChatAnswer } from './answers.ts'
import { chatFeatures, chatMembers } from './features.ts'
import { readChatRequest } from './read-request.ts'
import { ChatStreamReader } from './read-stream.ts'
import { writeChatRequest } from './write-request.ts'
import { ChatStreamWriter } from './write-stream.ts'

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
