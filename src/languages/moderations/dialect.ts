/**
 * Moderations, `POST /v1/moderations`: text or pictures in, categories out as JSON, never a stream. If the caller
 * gives no model, the gateway takes the provider's default.
 */
import { type Dialect, estimateTokens } from '../dialect.ts'
import { eventReader } from '../reading/frames/event-reader.ts'
import { isObject } from '../reading/json-value.ts'
import { modelOf } from '../reading/request-fields.ts'
import { inputLength, requestOnly, tokenMember } from '../reading/request-only.ts'
import { textReader } from '../reading/texts/request-texts.ts'
import { moderationsMembers } from './members.ts'

const defaultModel = 'omni-moderation-latest'

export const moderations: Dialect = {
  ...requestOnly,
  family: 'moderations',

  read: (body) => ({
    model: body.model === undefined || body.model === null ? defaultModel : modelOf(body),
    stream: false,
    inputEstimate: estimateTokens(inputLength(body.input)),
    outputLimit: 0,
    choices: 1,
    beyondBody: hasPicture(body.input),
    unbounded: null,
    sessionId: null,
  }),

  requestText: textReader(moderationsMembers, {}),
  tokenInput: (body) => tokenMember(body, 'input'),
  readAnswer: () => ({ usage: null, textLength: 0 }),
  reader: () => eventReader({ read: () => ({}), endsWithDone: true }),
}

const hasPicture = (input: unknown): boolean =>
  Array.isArray(input) && input.some((part) => isObject(part) && part.type === 'image_url')
