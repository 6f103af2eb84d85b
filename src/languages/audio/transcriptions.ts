/**
 * Transcriptions, `POST /v1/audio/transcriptions`: a form with a file in; JSON, plain text, subtitles or events out.
 * Policies read the prompt and every unknown field, not the audio and not the transcript.
 */
import { Failure } from '../../failure.ts'
import { type Dialect, estimateTokens } from '../dialect.ts'
import { eventReader } from '../reading/frames/event-reader.ts'
import { isObject, type JsonObject } from '../reading/json-value.ts'
import { modelOf } from '../reading/request-fields.ts'
import { inputLength, requestOnly } from '../reading/request-only.ts'
import { addMember } from '../reading/texts/request-texts.ts'
import type { TextSlot } from '../reading/texts/text-slot.ts'
import { transcriptionsMembers } from './members.ts'
import { readAudioUsage } from './usage.ts'

/** 128 kbit of audio last one second and make ten tokens: an estimate, for answers that report no usage. */
const bytesPerToken = 1600

export const transcriptions: Dialect = {
  ...requestOnly,
  family: 'transcriptions',

  read: (body) => ({
    model: modelOf(body),
    stream: isTrue(body.stream),
    inputEstimate: estimateTokens(inputLength(body.prompt)) + Math.ceil(fileBytes(body) / bytesPerToken),
    outputLimit: null,
    choices: 1,
    beyondBody: false,
    unbounded: null,
    sessionId: null,
  }),

  requestText(body) {
    const slots: TextSlot[] = []
    for (const name in body) {
      // The table lists the fields that hold no text; every other field is read, whatever its name. Files, and values
      // from a fixed list, are not read.
      if (!Object.hasOwn(transcriptionsMembers, name) && !isObject(body[name]))
        addMember(slots, body, name, { role: 'user', listed: true })
    }
    return slots
  },

  readAnswer: (body) =>
    isObject(body)
      ? { usage: readAudioUsage(body.usage), textLength: inputLength(body.text) }
      : { usage: null, textLength: 0 },

  reader: () =>
    eventReader({
      read({ type, delta, usage }) {
        if (type === 'transcript.text.done') return { terminal: true, usage: readAudioUsage(usage) }
        return type === 'transcript.text.delta' ? { textLength: inputLength(delta) } : {}
      },
      endsWithDone: false,
    }),
}

/** A form's fields are text. A value that two parsers could read differently is refused. */
function isTrue(field: unknown): boolean {
  if (field === undefined || field === '' || field === 'false' || field === 'False' || field === '0') return false
  if (field === 'true' || field === 'True' || field === '1') return true
  throw new Failure('invalid_parameter', { param: 'stream', message: 'stream must be true or false' })
}

const fileBytes = ({ file }: Readonly<JsonObject>): number =>
  isObject(file) && typeof file.bytes === 'number' ? file.bytes : 0
