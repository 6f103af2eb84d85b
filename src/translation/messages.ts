/**
 * The messages language (Anthropic's Messages API, version 2023-06-01, as the official client 1.11 has it): spoken by
 * applications and by providers of the kind anthropic.
 */
import type { Language } from './language.ts'
import { readMessagesAnswer, readMessagesError, writeMessagesAnswer, writeMessagesError } from './messages-answer.ts'
import { readMessagesRequest } from './messages-caller.ts'
import { messagesFeatures, messagesMembers } from './messages-features.ts'
import { MessagesStreamReader } from './messages-reader.ts'
import { writeMessagesRequest } from './messages-request.ts'
import { MessagesStreamWriter } from './messages-writer.ts'

export const messages: Language = {
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
}
