/**
 * Completions, `POST /v1/completions`: the legacy text language, JSON or SSE ended by `data: [DONE]`. Policies read
 * the prompt and the suffix; answers are not governed (policies/README.md).
 */
import { type Verdictan, waitingWords } from '../../failure.ts'
import { readUsage } from '../chat/answer.ts'
import { type Dialect, estimateTokens, type FrameFacts } from '../dialect.ts'
import { eventReader } from '../reading/frames/event-reader.ts'
import { isObject, type JsonObject, objectsOf, textOf } from '../reading/json-value.ts'
import { fieldReader, modelOf, plainId, startedAt } from '../reading/request-fields.ts'
import { inputLength, requestOnly, tokenMember } from '../reading/request-only.ts'
import { textReader } from '../reading/texts/request-texts.ts'
import { completionsMembers } from './members.ts'

const readFields = fieldReader(completionsMembers, 0)

export const completions: Dialect = {
  ...requestOnly,
  family: 'completions',

  read(body) {
    const model = modelOf(body)
    const fields = readFields(body)
    return {
      model,
      ...fields,
      choices: promptsOf(body.prompt) * fields.choices,
      inputEstimate: estimateTokens(inputLength(body.prompt) + inputLength(body.suffix)),
      beyondBody: false,
      unbounded: null,
    }
  },

  requestText: textReader(completionsMembers, {}),
  tokenInput: (body) => tokenMember(body, 'prompt'),

  readAnswer: (body) =>
    isObject(body)
      ? { usage: readUsage(body.usage), textLength: generatedLength(body.choices) }
      : { usage: null, textLength: 0 },

  reader: ({ model, exchangeId, usageAdded }) =>
    eventReader({
      read({ choices, usage: reported }): Partial<FrameFacts> {
        const usage = readUsage(reported)
        const onlyUsage = usage !== null && Array.isArray(choices) && choices.length === 0
        return { textLength: generatedLength(choices), usage, ours: onlyUsage && usageAdded }
      },
      endsWithDone: true,
      escalation: (verdictan) => waitingAnswer(model, verdictan, exchangeId),
    }),

  escalation: ({ model }, verdictan, exchangeId) => waitingAnswer(model, verdictan, exchangeId),
}

/** Each prompt of a list is completed separately; a list of numbers is one prompt made of tokens. */
function promptsOf(prompt: unknown): number {
  if (!Array.isArray(prompt) || typeof prompt[0] === 'number') return 1
  return Math.max(1, prompt.length)
}

const generatedLength = (choices: unknown): number =>
  objectsOf(choices).reduce((length, { text }) => length + (textOf(text)?.length ?? 0), 0)

/** An answer whose text says that a person has to decide (gateway/README.md, Escalations). */
function waitingAnswer(model: string, verdictan: Verdictan, exchangeId: string): JsonObject {
  return {
    id: `cmpl-${plainId(exchangeId)}`,
    object: 'text_completion',
    created: startedAt(exchangeId),
    model,
    choices: [{ index: 0, text: waitingWords(verdictan), logprobs: null, finish_reason: 'content_filter' }],
    verdictan,
  }
}
