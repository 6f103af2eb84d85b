/**
 * Speech, `POST /v1/audio/speech`: JSON in, audio out, or with `stream_format: "sse"` the same audio in events. Policies
 * read what is to be said and how; what is heard is not read.
 */

import { readAudioUsage } from './audio-usage.ts'
import { type Dialect, estimateTokens } from './dialect.ts'
import { eventReader } from './event-reader.ts'
import { modelOf } from './facts.ts'
import { isObject } from './json-value.ts'
import { inputLength, inputSlots, requestOnly } from './request-only.ts'

export const speech: Dialect = {
  ...requestOnly,
  family: 'speech',
  route: 'POST /v1/audio/speech',
  plainAnswers: ['audio/', 'application/octet-stream'],

  read: (body) => ({
    model: modelOf(body),
    stream: body.stream_format === 'sse',
    inputEstimate: estimateTokens(inputLength(body.input) + inputLength(body.instructions)),
    outputLimit: null,
    choices: 1,
    beyondBody: false,
    unbounded: null,
    sessionId: null,
  }),

  requestText: (body) => [...inputSlots(body, 'input'), ...inputSlots(body, 'instructions')],
  readAnswer: (body) => ({ usage: isObject(body) ? readAudioUsage(body.usage) : null, textLength: 0 }),

  reader: () =>
    eventReader({
      read: ({ type, usage }) => (type === 'speech.audio.done' ? { terminal: true, usage: readAudioUsage(usage) } : {}),
      endsWithDone: false,
    }),
}
