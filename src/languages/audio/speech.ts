/**
 * Speech, `POST /v1/audio/speech`: JSON in, audio out, or with `stream_format: "sse"` the same audio in events.
 * Policies read the text to be spoken and its instructions, not the audio.
 */

import { type Dialect, estimateTokens } from '../dialect.ts'
import { eventReader } from '../reading/frames/event-reader.ts'
import { isObject } from '../reading/json-value.ts'
import { modelOf } from '../reading/request-fields.ts'
import { inputLength, requestOnly } from '../reading/request-only.ts'
import { textReader } from '../reading/texts/request-texts.ts'
import { speechMembers } from './members.ts'
import { readAudioUsage } from './usage.ts'

export const speech: Dialect = {
  ...requestOnly,
  family: 'speech',

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

  requestText: textReader(speechMembers, {}),
  readAnswer: (body) => ({ usage: isObject(body) ? readAudioUsage(body.usage) : null, textLength: 0 }),

  reader: () =>
    eventReader({
      read: ({ type, usage }) => (type === 'speech.audio.done' ? { terminal: true, usage: readAudioUsage(usage) } : {}),
      endsWithDone: false,
    }),
}
