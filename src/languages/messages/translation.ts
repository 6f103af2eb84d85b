/**
 * The messages language (Anthropic's Messages API, version 2023-06-01, as the official client 1.11 has it): spoken by
 * applications and by providers of the kind anthropic.
 */
import type { Language } from '../translation-language.ts'
import { readMessagesAnswer, readMessagesError, writeMessagesAnswer, writeMessagesError } from './answers.ts'
import { messagesFeatures, messagesMembers } from './features.ts'
import { readMessagesRequest } from './read-request.ts'
import { MessagesStreamReader } from './read-stream.ts'
import { writeMessagesRequest } from './write-request.ts'
import { MessagesStreamWriter } from './write-stream.ts'

export const messages = {
  provider: {
    name: 'messages',
    writeRequest: writeMessagesRequest,
    readAnswer: readMessagesAnswer,
    readError: readMessagesError,
    streamReader: () => new MessagesStreamReader(),
  },
  caller: {
    name: 'messages',
    readRequest: readMessagesRequest,
    writeAnswer: writeMessagesAnswer,
    writeError: writeMessagesError,
    streamWriter: (asked) => new MessagesStreamWriter(asked),
  },
  features: messagesFeatures,
  members: messagesMembers,
} satisfies Language
