/** The simulator's text, the same in every language: words, each of which is a token. */
import { isObject, type JsonObject, objectsOf } from '../../languages/reading/json-value.ts'
import { yieldToEventLoop } from '../../lib/yield-to-event-loop.ts'
import type { UpstreamCall } from '../provider.ts'

/** Names the simulator in every answer. */
export const fingerprint = 'gatehouse-simulator'
/** A fixed instant, in seconds, so that the same request gives the same bytes. */
export const created = 1_767_225_600

const defaultLoremWords = 64
const loremLimit = 100_000

const lorem = (
  'Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor incididunt ut labore et dolore magna ' +
  'aliqua. Ut enim ad minim veniam, quis nostrud exercitation ullamco laboris nisi ut aliquip ex ea commodo consequat. ' +
  'Duis aute irure dolor in reprehenderit in voluptate velit esse cillum dolore eu fugiat nulla pariatur. Excepteur ' +
  'sint occaecat cupidatat non proident, sunt in culpa qui officia deserunt mollit anim id est laborum.'
).split(' ')

const simulatedModels = ['echo', 'lorem'] as const
export type SimulatedModel = (typeof simulatedModels)[number]

/** `simulator/echo` and `echo` are the same; null for a model that the simulator has not. */
export function simulatedModel(model: string): SimulatedModel | null {
  const name = model.slice(model.lastIndexOf('/') + 1)
  return simulatedModels.find((known) => known === name) ?? null
}

export interface Said {
  words: readonly string[]
  /** The limit ended it. */
  cut: boolean
  inputTokens: number
}

export interface Asked {
  model: SimulatedModel
  /** The text that `echo` returns. */
  lastText: string
  /** All texts of the input, which are counted. */
  texts: readonly string[]
  /** The most words of the answer; null where the caller does not say. */
  limit: number | null
}

export function say({ model, lastText, texts, limit }: Asked): Said {
  const available = model === 'echo' ? wordsOf(lastText) : loremWords(limit ?? defaultLoremWords)
  const words = limit === null ? available : available.slice(0, limit)
  return {
    words,
    cut: limit !== null && (words.length < available.length || model === 'lorem'),
    inputTokens: countWords(texts),
  }
}

export const countWords = (texts: readonly string[]): number =>
  texts.reduce((sum, text) => sum + wordsOf(text).length, 0)

/** Splits into words that keep the white space before them, so that joined they are the text again. */
export function wordsOf(text: string): readonly string[] {
  if (text === '') return []
  const words = text.split(/(?<=\S)(?=\s)/)
  const last = words.at(-1) ?? ''
  return words.length > 1 && last.trim() === '' ? [...words.slice(0, -2), words.at(-2) + last] : words
}

function loremWords(count: number): readonly string[] {
  const words: string[] = []
  for (let index = 0; index < Math.min(count, loremLimit); index++) {
    words.push((index === 0 ? '' : ' ') + lorem[index % lorem.length])
  }
  return words
}

/** A content's text: itself, or the texts of its parts. */
export function contentText(content: unknown): string {
  if (typeof content === 'string') return content
  return objectsOf(content)
    .map(({ text }) => (typeof text === 'string' ? text : ''))
    .join('')
}

/** The texts of messages, and that of the user's last one. */
export function readMessages(messages: unknown): Pick<Asked, 'texts' | 'lastText'> {
  const list = objectsOf(messages)
  return {
    texts: list.map(({ content }) => contentText(content)),
    lastText: contentText(list.findLast(({ role }) => role === 'user')?.content),
  }
}

/** The first of some members that is a limit. */
export function limitOf(body: JsonObject, members: readonly string[]): number | null {
  for (const member of members) {
    const limit = body[member]
    if (typeof limit === 'number' && Number.isInteger(limit) && limit > 0) return limit
  }
  return null
}

/** The same request always has the same id. */
export const idOf = ({ body }: UpstreamCall): string => Bun.hash(body).toString(16).padStart(16, '0')

export function parsedBody({ body }: UpstreamCall): JsonObject | null {
  const value: unknown = JSON.parse(new TextDecoder().decode(body))
  return isObject(value) ? value : null
}

const encoder = new TextEncoder()

/** How many frames follow one another before other requests have their turn: a few milliseconds of work. */
const framesATurn = 256

/** An event stream of these frames; each pull returns one, so a slow reader keeps nothing in memory. */
export function eventStream(frames: Iterator<string>): Response {
  let sent = 0
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      const next = frames.next()
      if (next.done) return controller.close()
      controller.enqueue(encoder.encode(next.value))
      sent++
      return sent % framesATurn === 0 ? yieldToEventLoop() : undefined
    },
  })
  return new Response(body, { headers: { 'content-type': 'text/event-stream' } })
}

export const dataFrame = (data: unknown): string => `data: ${JSON.stringify(data)}\n\n`

/** A frame whose data names its type as its `event` line does. */
export const namedFrame = (type: string, members: object = {}): string =>
  `event: ${type}\n${dataFrame({ type, ...members })}`

/** OpenAI's form of an error. */
export const refusal = (status: number, code: string, message: string): Response =>
  Response.json({ error: { message, type: 'invalid_request_error', param: null, code } }, { status })
