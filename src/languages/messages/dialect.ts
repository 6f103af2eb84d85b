/**
 * The messages language of `POST /v1/messages`: content blocks, JSON or SSE, streams between `message_start` and
 * `message_stop`, and errors of its own form for everything that the gateway refuses (handbook/reference/http.md).
 */
import { Failure, waitingWords } from '../../failure.ts'
import { type Dialect, estimateTokens } from '../dialect.ts'
import { unforeseenLength } from '../reading/frames/unknown-frames.ts'
import { hostedTools, limitHostedTools } from '../reading/hosted-tools.ts'
import { isGiven, isObject, type JsonObject, objectsOf } from '../reading/json-value.ts'
import { fieldReader, modelOf, reachesBeyond } from '../reading/request-fields.ts'
import { tokenMember } from '../reading/request-only.ts'
import { textReader } from '../reading/texts/request-texts.ts'
import { spelledTexts } from '../reading/texts/text-members.ts'
import type { TextSlot } from '../reading/texts/text-slot.ts'
import { slotsOf, textLength } from '../reading/texts/texts.ts'
import { topLevelTexts } from '../reading/texts/top-level-texts.ts'
import { errorBody, rewrittenError } from './error.ts'
import { messagesMembers } from './members.ts'
import { messagesReader } from './stream-reader.ts'
import {
  addContent,
  addMessages,
  blockHolder,
  blockSlots,
  generatedLength,
  ownMessage,
  readUsage,
  waitingDetails,
} from './texts.ts'

const readFields = fieldReader(messagesMembers)

export const messages: Dialect = {
  family: 'messages',

  read(body) {
    const model = modelOf(body)
    if (body.response_format !== undefined) {
      const message = 'response_format is not accepted on this route'
      throw new Failure('invalid_parameter', { param: 'response_format', message })
    }
    return {
      model,
      ...readFields(body),
      inputEstimate: estimateTokens(textLength(body.system) + textLength(body.messages)),
      beyondBody: isGiven(body.container) || reachesBeyond(body.messages),
      ...hostedTools(body.tools, isHosted),
      ...unboundedMember(body),
    }
  },

  limitTools: ({ tools }, uses) => (limitHostedTools(tools, isHosted, uses) ? ['tools'] : []),

  requestText: textReader(messagesMembers, {
    system(slots, body) {
      if (body.system !== undefined) addContent(slots, body, 'system', { member: 'system', role: 'system' })
    },
    messages: addMessages,
  }),
  tokenInput: (body) => tokenMember(body),

  readAnswer: (body) =>
    isObject(body)
      ? {
          usage: readUsage(body.usage),
          textLength: Array.isArray(body.content) ? generatedLength(body.content) : unforeseenLength(body),
        }
      : { usage: null, textLength: 0 },

  answerText: (body) =>
    isObject(body)
      ? [
          ...blockSlots(body.content, 'content', 'assistant'),
          ...spelledSlots(body.content),
          ...topLevelTexts(body, 'content'),
        ]
      : [],

  reader: (start) => messagesReader(start),
  errorBody,
  providerError: rewrittenError,
  escalation: ({ model }, verdictan, exchangeId, textOnly = false) => ({
    ...ownMessage(model, exchangeId),
    ...(textOnly
      ? { content: [{ type: 'text', text: waitingWords(verdictan) }], stop_reason: 'end_turn' }
      : { stop_reason: 'refusal', stop_details: waitingDetails(verdictan) }),
    verdictan,
  }),
}

const spelledSlots = (content: unknown): TextSlot[] =>
  objectsOf(content).flatMap((block) =>
    slotsOf(spelledTexts(blockHolder(block)), { member: 'content', role: 'assistant' }),
  )

/** Tools with a dated type that the provider does not run itself. */
const runByCaller = /^(?:custom|bash_|text_editor_|computer_|memory_)/
const isHosted = (type: string): boolean => !runByCaller.test(type)

function unboundedMember(body: Readonly<JsonObject>) {
  if (!Array.isArray(body.mcp_servers) || body.mcp_servers.length === 0) return null
  const why = 'The provider calls the tools of mcp_servers as often as the model asks for them: leave mcp_servers out'
  return { unbounded: 'mcp_servers', unboundedWhy: why }
}
