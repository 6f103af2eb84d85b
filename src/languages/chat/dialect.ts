/**
 * Chat completions, the language of `POST /v1/chat/completions`: JSON or SSE, a stream ended by `data: [DONE]`,
 * errors in the product's error envelope. Bodies stay as the provider and the caller wrote them; only fields that the
 * gateway acts on are read.
 */
import { envelope, type Verdictan, waitingWords } from '../../failure.ts'
import { type Dialect, estimateTokens, type RequestFacts } from '../dialect.ts'
import { unforeseenLength } from '../reading/frames/unknown-frames.ts'
import { hostedTools } from '../reading/hosted-tools.ts'
import { isObject, type JsonObject, objectsOf, textOf } from '../reading/json-value.ts'
import { checkResponseFormat } from '../reading/output-format.ts'
import { fieldReader, modelOf, plainId, reachesBeyond, startedAt } from '../reading/request-fields.ts'
import { tokenMember } from '../reading/request-only.ts'
import { addMember, textReader } from '../reading/texts/request-texts.ts'
import { spelledTexts } from '../reading/texts/text-members.ts'
import type { TextSlot } from '../reading/texts/text-slot.ts'
import { FoundSlot, textLength, textsIn } from '../reading/texts/texts.ts'
import { topLevelTexts } from '../reading/texts/top-level-texts.ts'
import { choiceHolders, generatedLength, readUsage } from './answer.ts'
import { chatMembers } from './members.ts'
import { chatReader } from './stream-reader.ts'

const readFields = fieldReader(chatMembers)

export const chat: Dialect = {
  family: 'chat',

  read(body) {
    const model = modelOf(body)
    checkResponseFormat(body.response_format)
    return {
      model,
      ...readFields(body),
      inputEstimate: estimateTokens(textLength(body.messages)),
      beyondBody: reachesBeyond(body.messages) || refersToAudio(body.messages),
      ...hostedTools(body.tools, isHosted),
      ...unboundedMember(body),
    }
  },

  requestText: textReader(chatMembers, { messages: addMessages }),
  tokenInput: (body) => tokenMember(body),

  readAnswer: (body) =>
    isObject(body)
      ? {
          usage: readUsage(body.usage, body.service_tier),
          textLength: Array.isArray(body.choices) ? generatedLength(body.choices, 'message') : unforeseenLength(body),
        }
      : { usage: null, textLength: 0 },

  answerText(body) {
    if (!isObject(body)) return []
    const slots: TextSlot[] = []
    for (const choice of objectsOf(body.choices)) addChoice(slots, choice)
    for (const slot of topLevelTexts(body, 'choices')) slots.push(slot)
    return slots
  },

  reader: (start) => chatReader(start),
  errorBody: envelope,
  providerError: () => null,
  escalation,
}

const isHosted = (type: string): boolean => type !== 'function' && type !== 'custom'

/** An earlier answer's audio is referenced by id only. */
function refersToAudio(messages: unknown): boolean {
  for (const { audio } of objectsOf(messages)) if (isObject(audio) && audio.id !== undefined) return true
  return false
}

/** A member that makes the cost impossible to bound in advance. */
function unboundedMember(body: Readonly<JsonObject>) {
  if (isObject(body.web_search_options)) {
    const why =
      'The provider searches as often as the model asks for it: leave web_search_options out, or send the request to /v1/responses with the tool web_search and max_tool_calls'
    return { unbounded: 'web_search_options', unboundedWhy: why }
  }
  if (!Array.isArray(body.modalities) || !body.modalities.includes('audio')) return null
  return {
    unbounded: 'modalities',
    unboundedWhy: 'The length of an answer in audio has no limit: leave audio out of modalities',
  }
}

function addMessages(slots: TextSlot[], body: JsonObject): void {
  const messages = objectsOf(body.messages)
  for (const message of messages) {
    const role = textOf(message.role)
    const kind = role === 'tool' || role === 'function' ? 'tool_result' : 'content'
    const owner = { member: 'messages', role, message }
    for (const found of textsIn(message, { kind, files: true })) slots.push(new FoundSlot(found, owner))
  }
  if (messages !== body.messages) addMember(slots, body, 'messages', { role: null, listed: true })
}

function addChoice(slots: TextSlot[], choice: JsonObject): void {
  // Log probabilities repeat the text.
  const onReplace = () => {
    if (choice.logprobs !== undefined) choice.logprobs = null
  }
  const owner = { member: 'choices', role: 'assistant', onReplace }
  const spelled = choiceHolders(choice, 'message').flatMap(spelledTexts)
  for (const found of [...textsIn(choice), ...spelled]) slots.push(new FoundSlot(found, owner))
}

/** An answer that waits for a person, without content unless its client shows nothing else (gateway/README.md). */
function escalation({ model }: RequestFacts, verdictan: Verdictan, exchangeId: string, textOnly = false): JsonObject {
  const words = waitingWords(verdictan)
  return {
    id: `chatcmpl-${plainId(exchangeId)}`,
    object: 'chat.completion',
    created: startedAt(exchangeId),
    model,
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          ...(textOnly ? { content: words, refusal: null } : { content: null, refusal: words }),
        },
        logprobs: null,
        finish_reason: textOnly ? 'stop' : 'content_filter',
      },
    ],
    verdictan,
  }
}
