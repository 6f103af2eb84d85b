/**
 * Frames in no form that a stream's language has. What is unknown in them is text (inspection/README.md), and may go on
 * from one to the next: each place of such frames is one text, which is inspected as those that the language knows.
 *
 * A frame that another language says is not passed on at all: whoever sent it was asked in the wrong one, or lies.
 */
import { type SseFrame, withData } from '../../../lib/http/sse.ts'
import type { FrameFacts, FrameText, Usage } from '../../dialect.ts'
import { isGiven, isObject, type JsonObject, objectsOf } from '../json-value.ts'
import { objectWith } from '../texts/text-paths.ts'
import { type FoundText, textLength, textsIn } from '../texts/texts.ts'
import { MalformedJson, stringOf } from './malformed-json.ts'
import { frameBytes, type OpenFrame } from './open-frame.ts'
import { isTruncatedObject } from './truncated-json.ts'

type StreamLanguage = 'chat' | 'responses' | 'messages'

/** The events of a messages stream. */
export const messageEvents: ReadonlySet<string> = new Set([
  ...['message_start', 'message_delta', 'message_stop'],
  ...['content_block_start', 'content_block_delta', 'content_block_stop'],
])

/** Whether another language than `own` says so; `type`: what the frame calls itself, in its data or beside it. */
export function isForeign(own: StreamLanguage, type: string, data: JsonObject): boolean {
  if (own !== 'responses' && type.startsWith('response.')) return true
  if (own !== 'messages' && messageEvents.has(type)) return true
  if (own !== 'chat' && objectsOf(data.choices).length > 0) return true
  return objectsOf(data.candidates).some(({ content, finishReason }) => isObject(content) || finishReason !== undefined)
}

/** Whether an event is one by its name and another by its data: some clients go by the one, some by the other. */
export const isTwofold = (name: string | null, { type }: JsonObject): boolean =>
  name !== null && isKnownEvent(name) && typeof type === 'string' && type !== name

const isKnownEvent = (name: string): boolean => name.startsWith('response.') || messageEvents.has(name)

/** What a frame in no form of the language means. Its text counts where the provider has not told what it used. */
export const unknownFrameFacts = (data: JsonObject | string, usage: Usage | null): FrameFacts => ({
  terminal: false,
  textLength: usage !== null || (typeof data === 'string' && isTruncatedObject(data)) ? 0 : textLength(data),
  usage,
  error: null,
  ours: false,
})

/** Characters of a whole answer in no form of its language: they were passed on, so they count. An error's do not. */
export const unforeseenLength = (body: JsonObject): number => (isGiven(body.error) ? 0 : textLength(body))

const plain = 'unforeseen'
/** What providers say in place of a comment while there is nothing to say. */
const keepsOpen = /^[([{<"':]*(?:ping|pong|keep[-_ ]?alive|heart[-_ ]?beat)[)\]}>"':]*$/i

/** Whether a frame's data only keeps the line open: such a word, or nothing, which is no event to clients either. */
export const saysOnlyThatItLives = (data: string): boolean => data === '' || keepsOpen.test(data)

const emptyFrame = new TextEncoder().encode('data:\n\n')

export class Unforeseen {
  readonly #types = new Map<string, { place: string; type: string }>()
  readonly #looseJson = new MalformedJson()

  /** Adds all texts of a frame; `type`: its event's name, empty where it has none. */
  open(opened: OpenFrame, data: JsonObject, type: string): void {
    for (const found of textsIn(data)) {
      const channel = `unforeseen/${found.place}`
      const continued = goesOn(found)
      if (continued) this.#types.set(channel, { place: found.place, type })
      opened.add(found, channel, !continued)
    }
  }

  /**
   * A frame whose data is no JSON object: the whole of it is text, or what it says as a JSON string, for whoever reads it
   * all the same, and contradicts where that may be an object to some. `ends`: what else ends with it, where it is the last.
   */
  openPlain(frame: SseFrame, data: string, ends: readonly string[] | null = null): FrameText {
    // A frame that the stream broke off in does not leave, but for one that ends the answer all the same.
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

  /** A frame of ours that goes on with a text; null where the channel is none of these. */
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
 * Labels and names say the same in every frame; arguments that are an object must still parse. What stands far back in a
 * list is a text by itself in each frame: one of ours that went on with it would hold as many elements before it.
 */
const goesOn = ({ kind, place, alone }: FoundText): boolean =>
  kind !== 'name' &&
  !farBack.test(place) &&
  !(alone && kind === 'tool_arguments' && /(?:^|\/)(?:arguments|input)$/.test(place))

const farBack = /#\d{3}/
