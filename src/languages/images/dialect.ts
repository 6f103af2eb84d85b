/**
 * Images, `POST /v1/images/generations` and `POST /v1/images/edits`: a prompt in, JSON or with edits a form with files;
 * images out, as JSON or as events with partial images. Policies read the prompt and every unknown member, not the
 * images.
 */
import { Failure } from '../../failure.ts'
import { type Dialect, estimateTokens, type RequestFacts, type StreamReader, type Usage } from '../dialect.ts'
import { eventReader } from '../reading/frames/event-reader.ts'
import { countOf, isObject, type JsonObject, textOf } from '../reading/json-value.ts'
import { modelOf } from '../reading/request-fields.ts'
import { inputLength, requestOnly } from '../reading/request-only.ts'
import { textReader } from '../reading/texts/request-texts.ts'
import { imageEditMembers, imageMembers } from './members.ts'

export const images: Dialect = {
  ...requestOnly,
  family: 'images',
  read: (body) => ({ ...factsOf(body), beyondBody: false }),
  requestText: textReader(imageMembers, {}),
  readAnswer: (body) => ({ usage: isObject(body) ? usageOf(body) : null, textLength: 0 }),
  reader: ({ choices = 1 }) => imageReader(choices),
}

export const imageEdits: Dialect = {
  ...images,
  family: 'image_edits',
  read: (body) => ({ ...factsOf(body), beyondBody: true }),
  requestText: textReader(imageEditMembers, {}),
}

function factsOf(body: Readonly<JsonObject>): Omit<RequestFacts, 'beyondBody'> {
  return {
    model: modelOf(body),
    stream: isTrue(body.stream),
    inputEstimate: estimateTokens(inputLength(body.prompt)),
    outputLimit: null,
    choices: countIn(body.n),
    unbounded: null,
    sessionId: null,
  }
}

/** The fields of a form are text. A value that two parsers could read differently is refused. */
function isTrue(value: unknown): boolean {
  if (value === undefined || value === null || value === false || value === 'false') return false
  if (value === true || value === 'true') return true
  throw new Failure('invalid_parameter', { param: 'stream', message: 'stream must be true or false' })
}

function countIn(value: unknown): number {
  if (value === undefined || value === null) return 1
  const count = typeof value === 'string' && /^[1-9]\d{0,3}$/.test(value) ? Number(value) : value
  if (typeof count === 'number' && Number.isSafeInteger(count) && count > 0) return count
  throw new Failure('invalid_parameter', { param: 'n', message: 'n must be a whole number of at least 1' })
}

/** `images`: how many the provider made. Some providers report no tokens. */
function usageOf({ usage, data }: JsonObject, made = Array.isArray(data) ? data.length : 0): Usage | null {
  const tokens = isObject(usage) ? usage : {}
  const [inputTokens, outputTokens] = [countOf(tokens.input_tokens), countOf(tokens.output_tokens)]
  if (made === 0 && inputTokens === null && outputTokens === null) return null
  return {
    inputTokens,
    outputTokens,
    cachedInputTokens: null,
    cacheWriteTokens: null,
    reasoningTokens: null,
    images: made,
  }
}

/** An image that was asked for ends with an event of its own; the last of them ends the stream. */
function imageReader(choices: number): StreamReader {
  let made = 0
  return eventReader({
    read(event) {
      if (!/^image_(?:generation|edit)\.completed$/.test(textOf(event.type) ?? '')) return {}
      made += 1
      return { terminal: made >= choices, usage: usageOf(event, made) }
    },
    endsWithDone: false,
  })
}
