/**
 * The realtime language (OpenAI's Realtime API, its generally available form): a session over a WebSocket, in which
 * each response is one governed request. The gateway reads its events in one form of body, `{model, instructions,
 * tools, input, …}`: the settings of a session, the items of a conversation, and what a response asks for. The
 * provider keeps the conversation, so a body never holds all of the input.
 */
import { envelope } from '../../failure.ts'
import { type Dialect, estimateTokens } from '../dialect.ts'
import { isObject, type JsonObject, objectsOf } from '../reading/json-value.ts'
import { fieldReader, modelOf, plainId } from '../reading/request-fields.ts'
import { tokenMember } from '../reading/request-only.ts'
import { textReader } from '../reading/texts/request-texts.ts'
import { textLength } from '../reading/texts/texts.ts'
import { addInput } from '../responses/dialect.ts'
import { responsesReader } from '../responses/stream-reader.ts'
import { eventId, realtimeEvents } from './events.ts'
import { realtimeMembers } from './members.ts'

const readFields = fieldReader(realtimeMembers)

export const realtime: Dialect = {
  family: 'realtime',

  read(body) {
    const model = modelOf(body)
    return {
      model,
      // `inf` is the language's word for no limit.
      ...readFields(body.max_output_tokens === 'inf' ? { ...body, max_output_tokens: null } : body),
      stream: true,
      inputEstimate: estimateTokens(textLength(body.instructions) + textLength(body.input)),
      beyondBody: true,
      unbounded: null,
    }
  },

  requestText: textReader(realtimeMembers, { input: addInput }),
  tokenInput: (body) => (objectsOf(body.input).some(hasUnreadSound) ? 'input' : tokenMember(body)),

  // Every answer is a stream.
  readAnswer: () => ({ usage: null, textLength: 0 }),
  answerText: () => [],
  reader: (start) => responsesReader(start, realtimeEvents),
  errorBody: (failure, requestId) => ({
    type: 'error',
    event_id: eventId(plainId(requestId)),
    ...envelope(failure, requestId),
  }),
  providerError: () => null,
  escalation: () => null,
}

/** Sound without a transcript, which no policy can read. */
const hasUnreadSound = ({ content }: JsonObject): boolean =>
  objectsOf(content).some(({ type, audio, transcript }) => {
    const isSound = type === 'input_audio' || type === 'output_audio' || type === 'audio'
    return isSound && (typeof audio === 'string' || isObject(audio)) && typeof transcript !== 'string'
  })
