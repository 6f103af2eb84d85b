/**
 * Requests of the responses language that make no response: they read, change or delete what a provider has stored
 * (responses, conversations and their items), or ask it to compact a conversation.
 */
import type { Dialect, RequestFacts } from '../dialect.ts'
import { isObject, type JsonObject, objectsOf, textOf } from '../reading/json-value.ts'
import { textReader } from '../reading/texts/request-texts.ts'
import type { TextSlot } from '../reading/texts/text-slot.ts'
import { slotsOf } from '../reading/texts/texts.ts'
import { topLevelTexts } from '../reading/texts/top-level-texts.ts'
import { responses } from './dialect.ts'
import { itemTexts, roleOf } from './texts.ts'

/** What a request that generates nothing asks for. */
export const nothingGenerated: RequestFacts = {
  model: '',
  stream: false,
  inputEstimate: 0,
  outputLimit: 0,
  choices: 1,
  beyondBody: false,
  unbounded: null,
  sessionId: null,
}

/** The members of a request to a conversation; policies read all of it but these. */
const storedMembers = { model: { text: 'none' }, stream: { text: 'none' }, items: { text: 'own' } } as const

/** `GET`, `POST` and `DELETE` of stored responses and conversations. A body has `items` or `metadata`, or nothing. */
export const storedObjects: Dialect = {
  ...responses,
  readsStored: true,
  read: (body) => ({ ...nothingGenerated, model: textOf(body.model) ?? '', stream: body.stream === true }),
  requestText: textReader(storedMembers, {
    items(slots, body) {
      for (const item of objectsOf(body.items)) slots.push(...itemSlots(item, 'items', true))
      slots.push(...topLevelTexts({ items: body.items }, 'items'))
    },
  }),
  readAnswer: () => ({ usage: null, textLength: 0 }),
  answerText(body, asked) {
    if (!isObject(body)) return []
    if (Array.isArray(body.data)) {
      return [...objectsOf(body.data).flatMap((item) => itemSlots(item, 'data')), ...topLevelTexts(body, 'data')]
    }
    const isResponse = Array.isArray(body.output) || textOf(body.object)?.startsWith('response') === true
    return isResponse ? responses.answerText(body, asked) : itemSlots(body, 'data')
  },
  escalation: () => null,
}

const itemSlots = (item: JsonObject, member: string, files = false): TextSlot[] =>
  slotsOf(itemTexts(item, files), { member, role: roleOf(item) })

export const compactPath = '/v1/responses/compact'

/** `POST /v1/responses/compact`: a shorter list of items that stands for the conversation; never a stream. */
export const compact: Dialect = {
  ...responses,
  endpoint: '/responses/compact',
  read: (body) => ({ ...responses.read(body), stream: false }),
  escalation: () => null,
}
