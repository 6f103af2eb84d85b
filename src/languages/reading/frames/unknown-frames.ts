/**
 * Frames in a form that the stream's language does not have. Unknown content in them is text (inspection/README.md),
 * and may continue from one frame to the next: each place in such frames is one text, which is inspected like the
 * known ones.
 *
 * A frame in another known language is not passed on at all: the provider answers in the wrong language, or tries to
 * deceive.
 */
import { type SseFrame, withData } from '../../../lib/http/sse.ts'
import type { FrameFacts, FrameText, Usage } from '../../dialect.ts'
import { isGiven, isObject, type JsonObject, objectsOf } from '../json-value.ts'
import { objectWith } from '../texts/text-paths.ts'
import { type FoundText, textLength, textsIn } from '../texts/texts.ts'
import { MalformedJson, stringOf } from './malformed-json.ts'
import { frameBytes, type OpenFrame } from './open-frame.ts'
import { isTruncatedObject } from './truncated-json.ts'

type StreamLanguage = 'chat' | 'responses' | 'messages' | 'gemini'

/** The events of a messages stream. */
export const messageEvents: ReadonlySet<string> = new Set([
  ...['message_start', 'message_delta', 'message_stop'],
  ...['content_block_start', 'content_block_delta', 'content_block_stop'],
])

/** Whether a frame is in another language than `own`; `type`: the frame's type, in its data or its event name. */
export function isForeign(own: StreamLanguage, type: string, data: JsonObject): boolean {
  if (own !== 'responses' && type.startsWith('response.')) return true
  if (own !== 'messages' && messageEvents.has(type)) return true
  if (own !== 'chat' && objectsOf(data.choices).length > 0) return true
  if (own === 'gemini') return false
  return objectsOf(data.candidates).some(({ content, finishReason }) => isObject(content) || finishReason !== undefined)
}

/** Whether an event's name and its data give different types: some clients use the one, some the other. */
export const isTwofold = (name: string | null, { type }: JsonObject): boolean =>
  name !== null && isKnownEvent(name) && typeof type === 'string' && type !== name

const isKnownEvent = (name: string): boolean => name.startsWith('response.') || messageEvents.has(name)

/** The meaning of a frame in an unknown form. Its text counts if the provider has not reported usage. */
export const unknownFrameFacts = (data: JsonObject | string, usage: Usage | null): FrameFacts => ({
  terminal: false,
  textLength: usage !== null || (typeof data === 'string' && isTruncatedObject(data)) ? 0 : textLength(data),
  usage,
  error: null,
  ours: false,
})

/** Characters of a whole answer in an unknown form: they were passed on, so they count. An error's do not. */
export const unforeseenLength = (body: JsonObject): number => (isGiven(body.error) ? 0 : textLength(body))

const plain = 'unforeseen'
/** Words that providers send as keep-alive in place of a comment. */
const keepsOpen = /^[([{<"':]*(?:ping|pong|keep[-_ ]?alive|heart[-_ ]?beat)[)\]}>"':]*$/i

/** Whether a frame's data is only a keep-alive: such a word, or nothing, which is no event for clients either. */
export const saysOnlyThatItLives = (data: string): boolean => data === '' || keepsOpen.test(data)

const emptyFrame = new TextEncoder().encode('data:\n\n')

export class Unforeseen {
  readonly #types = new Map<string, { place: string; type: string }>()
  readonly #looseJson = new MalformedJson()

  /** Adds all texts of a frame; `type`: its event's name, or an empty string. */
  open(opened: OpenFrame, data: JsonObject, type: string): void {
    for (const found of textsIn(data)) {
      const channel = `unforeseen/${found.place}`
      const continued = goesOn(found)
      if (continued) this.#types.set(channel, { place: found.place, type })
      opened.add(found, channel, !continued)
    }
  }

  /**
   * A frame whose data is not a JSON object: all of it is text, or the value if it is a JSON string, for clients that
   * read it anyway. It contradicts if some parser may take it for an object. `ends`: other channels that end with it,
   * if it is the last.
   */
  openPlain(frame: SseFrame, data: string, ends: readonly string[] | null = null): FrameText {
    // A frame that was cut off is not passed on, unless it ends the answer.
    const isCut = frame.cut === true && ends === null
    const raw = keepsOpen.test(data) ? 'word' : 'text'
    const contradicts = raw === 'text' && !isCut && this.#looseJson.mayBe(data)
    const string = stringOf(data)
    const text = string ?? data
    const inLines = string === null && text.includes('\n')
    let sent = text
    const replace = (replacement: string) => {
      sent = replacement
    }
    return {
      pieces: [
        { channel: plain, kind: 'content', text, whole: false, raw, event: frame.event || 'message', inLines, replace },
      ],
      ends: ends === null ? [] : [...ends, plain],
      contradicts,
      bytes: () => {
        if (sent === text) return frame.bytes
        return withData(frame, string === null ? sent : JSON.stringify(sent))
      },
    }
  }

  /** A frame that the gateway writes to continue a text; null if the channel is of another kind. */
  delta(channel: string, text: string): Uint8Array | null {
    if (channel === plain) return withData({ bytes: emptyFrame }, text)
    const known = this.#types.get(channel)
    if (known === undefined) return null
    const { place, type } = known
    const data = objectWith(place, text)
    return type === '' ? frameBytes(data) : frameBytes({ type, ...data }, type)
  }
}

/**
 * Labels and names repeat in every frame; arguments that are an object must still parse. A text far back in a list is
 * a text of its own in each frame: a frame that continues it would need as many elements before it.
 */
const goesOn = ({ kind, place, alone }: FoundText): boolean =>
  kind !== 'name' &&
  !farBack.test(place) &&
  !(alone && kind === 'tool_arguments' && /(?:^|\/)(?:arguments|args|input)$/.test(place))

const farBack = /#\d{3}/
