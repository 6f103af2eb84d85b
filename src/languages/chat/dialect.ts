/**
 * Chat completions, the language of `POST /v1/chat/completions`: JSON or SSE, a stream ended by `data: [DONE]`, errors in
 * the product's error envelope. Bodies are the provider's and the caller's own; only what the gateway acts on is read.
 */
import { envelope, type Verdictan } from '../../failure.ts'
import { type Dialect, estimateTokens, type RequestFacts } from '../dialect.ts'
import { unforeseenLength } from '../reading/frames/unknown-frames.ts'
import { isGiven, isObject, type JsonObject, objectsOf, textOf } from '../reading/json-value.ts'
import { checkResponseFormat } from '../reading/output-format.ts'
import {
  hostedTools,
  modelOf,
  outputLimitOf,
  plainId,
  reachesBeyond,
  serviceTierOf,
  sessionIdOf,
  startedAt,
  wholeNumber,
} from '../reading/request-fields.ts'
import { tokenMember } from '../reading/request-only.ts'
import { addDescribed, addMember, addRest } from '../reading/texts/request-texts.ts'
import { choiceHolders, spelledTexts } from '../reading/texts/text-members.ts'
import type { TextSlot } from '../reading/texts/text-slot.ts'
import { FoundSlot, textLength, textsIn } from '../reading/texts/texts.ts'
import { topLevelTexts } from '../reading/texts/top-level-texts.ts'
import { generatedLength, readUsage } from './answer.ts'
import { chatReader } from './stream-reader.ts'

export const chat: Dialect = {
  family: 'chat',

  read(body) {
    const model = modelOf(body)
    checkResponseFormat(body.response_format)
    const tools = hostedTools(body.tools, isHosted)
    return {
      model,
      stream: body.stream === true,
      inputEstimate: estimateTokens(textLength(body.messages)),
      outputLimit: largestLimit(body),
      choices: wholeNumber(body, 'n', 1) ?? 1,
      beyondBody: reachesBeyond(body.messages) || refersToAudio(body.messages),
      unbounded: tools.unbounded ? 'tools' : unboundedMember(body),
      ...(tools.uses > 0 && { toolUses: tools.uses }),
      ...serviceTierOf(body.service_tier),
      sessionId: sessionIdOf(body),
    }
  },

  requestText(body) {
    const slots = messageSlots(body)
    addMember(slots, body, 'prediction', { role: 'assistant' })
    for (const member of describing) addDescribed(slots, body, member)
    addRest(slots, body, readMembers)
    return slots
  },

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

const limitNames = ['max_completion_tokens', 'max_tokens'] as const

/** The member has two names; where both are given, the provider may follow either. */
function largestLimit(body: Readonly<JsonObject>): number | null {
  let largest: number | null = null
  for (const name of limitNames) {
    if (!isGiven(body[name])) continue
    const limit = outputLimitOf(body, name)
    if (limit === null) return null
    largest = Math.max(largest ?? 0, limit)
  }
  return largest
}

/** An earlier answer's audio is named by its id only. */
function refersToAudio(messages: unknown): boolean {
  for (const { audio } of objectsOf(messages)) if (isObject(audio) && audio.id !== undefined) return true
  return false
}

/** A member that makes the cost depend on what nobody knows beforehand. */
function unboundedMember(body: Readonly<JsonObject>): string | null {
  if (isObject(body.web_search_options)) return 'web_search_options'
  if (Array.isArray(body.modalities) && body.modalities.includes('audio')) return 'modalities'
  return null
}

function messageSlots(body: JsonObject): TextSlot[] {
  const slots: TextSlot[] = []
  const messages = objectsOf(body.messages)
  for (const message of messages) {
    const role = textOf(message.role)
    const kind = role === 'tool' || role === 'function' ? 'tool_result' : 'content'
    const owner = { member: 'messages', role, message }
    for (const found of textsIn(message, { kind, files: true })) slots.push(new FoundSlot(found, owner))
  }
  if (messages !== body.messages) addMember(slots, body, 'messages', { role: null, listed: true })
  return slots
}

/** Members with texts of their own, in the order in which they are read after the messages and a predicted output. */
const describing = ['tools', 'tool_choice', 'function_call', 'functions', 'response_format'] as const
const readMembers = ['messages', 'prediction', ...describing]

function addChoice(slots: TextSlot[], choice: JsonObject): void {
  // Log probabilities spell the text once more.
  const onReplace = () => {
    if (choice.logprobs !== undefined) choice.logprobs = null
  }
  const owner = { member: 'choices', role: 'assistant', onReplace }
  const spelled = choiceHolders(choice, 'message').flatMap(spelledTexts)
  for (const found of [...textsIn(choice), ...spelled]) slots.push(new FoundSlot(found, owner))
}

/** An answer without content, which waits for a person (gateway/README.md, Escalations). */
function escalation({ model }: RequestFacts, verdictan: Verdictan, exchangeId: string): JsonObject {
  return {
    id: `chatcmpl-${plainId(exchangeId)}`,
    object: 'chat.completion',
    created: startedAt(exchangeId),
    model,
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content: null, refusal: null },
        logprobs: null,
        finish_reason: 'content_filter',
      },
    ],
    verdictan,
  }
}
