/**
 * Collects a streamed answer for policies that need the whole: each text as the provider sent it and as it leaves,
 * texts that come in one piece, and tool calls.
 */

import type { ChannelReader } from '../../inspection/stream.ts'
import type { FrameText, StreamPiece } from '../../languages/dialect.ts'
import { parseFrame } from '../../languages/reading/frames/non-finite.ts'
import type { TextKind, TextSlot } from '../../languages/reading/texts/text-slot.ts'
import type { SseFrame } from '../../lib/http/sse.ts'
import { isToolChannel, streamedTools } from './streamed-tools.ts'

/** One text that arrives in pieces. */
interface Streamed {
  readonly kind: TextKind
  came: string
  sent: string
}

export class CollectedAnswer {
  readonly #texts = new Map<string, Streamed>()
  /** Texts that came whole. Most repeat a channel; some come only this way. */
  readonly #wholes = new Map<string, { member: string; kind: TextKind; sent: string }>()
  readonly #tools = new Set<string>()
  /** The channels of arguments that have arrived. */
  readonly #asked = new Set<string>()
  /** A frame names the place of its text in two ways, so the whole is ambiguous. */
  contradicts = false

  noteTools({ data }: SseFrame): void {
    if (data !== null) for (const name of streamedTools(parseFrame(data))) this.#tools.add(name)
  }

  tools(): string[] {
    const streamed = [...this.#texts].filter(([channel, { kind }]) => kind === 'name' && isToolChannel(channel))
    return [...new Set([...this.#tools, ...streamed.map(([, { came }]) => came)])]
  }

  /** Wraps the reader and records every text as received and as sent. */
  reading(reader: ChannelReader<SseFrame>): ChannelReader<SseFrame> {
    return {
      open: (frame) => {
        const opened = reader.open(frame)
        return opened === null ? null : this.#watched(opened)
      },
      delta: (channel, text) => {
        const known = this.#texts.get(channel)
        if (known !== undefined) known.sent += text
        return reader.delta(channel, text)
      },
    }
  }

  /**
   * The texts as received or as sent: first streamed texts, then whole texts that repeat none of them. Their role is
   * unknown.
   */
  slots(which: 'came' | 'sent'): TextSlot[] {
    const streamed = [...this.#texts].map(([member, text]) =>
      slotOf({ member, kind: text.kind, role: 'assistant', text: text[which] }),
    )
    const known = new Set([...this.#texts.values()].map(({ came }) => came))
    const others = [...this.#wholes]
      .filter(([text]) => !known.has(text))
      .map(([came, { member, kind, sent }]) => {
        const role = kind === 'content' ? null : 'assistant'
        return slotOf({ member, kind, role, text: which === 'came' ? came : sent })
      })
    return [...streamed, ...others, ...this.#callsWithoutArguments()]
  }

  /** Calls without arguments get an empty text, as whole answers have it. */
  #callsWithoutArguments(): TextSlot[] {
    return [...this.#texts]
      .flatMap(([channel, { kind }]) => (kind === 'name' && isToolChannel(channel) ? argumentsBeside(channel) : []))
      .filter((member) => !this.#asked.has(member))
      .map((member) => slotOf({ member, kind: 'tool_arguments', role: 'assistant', text: '' }))
  }

  clear(): void {
    this.#texts.clear()
    this.#wholes.clear()
    this.#tools.clear()
    this.#asked.clear()
  }

  #watched(opened: FrameText): FrameText {
    const sent = new Map<number, string>()
    const pieces = opened.pieces.map((piece, index) => {
      const { channel, kind, text } = piece
      if (kind === 'tool_arguments' && text !== '') this.#asked.add(channel)
      if (!isPart(piece)) {
        this.#wholes.set(text, { member: channel, kind, sent: text })
        if (isToolChannel(channel)) this.#tools.add(text)
      } else if (text !== '') this.#streamed(channel, kind).came += text
      const replace = (instead: string) => {
        sent.set(index, instead)
        piece.replace(instead)
      }
      return { ...piece, replace }
    })
    const bytes = () => {
      for (const [index, piece] of pieces.entries()) {
        const passed = sent.get(index) ?? piece.text
        // The data of a frame may be empty and then holds no text.
        if (passed === '' && piece.text === '') continue
        const known = isPart(piece) ? this.#streamed(piece.channel, piece.kind) : this.#wholes.get(piece.text)
        if (known !== undefined) known.sent = isPart(piece) ? known.sent + passed : passed
      }
      return opened.bytes()
    }
    const { ends, contradicts = false, actsAtOnce = false } = opened
    if (contradicts) this.contradicts = true
    return { pieces, ends, contradicts, actsAtOnce, bytes }
  }

  #streamed(channel: string, kind: TextKind): Streamed {
    const known = this.#texts.get(channel)
    if (known !== undefined) return known
    const made: Streamed = { kind, came: '', sent: '' }
    this.#texts.set(channel, made)
    return made
  }
}

/** The channel of the arguments whose call has its name in this channel. */
const argumentsBeside = (channel: string): string[] => {
  const [, call, holder] = /^(.*)\b(function|custom|function_call)\/name$/.exec(channel) ?? []
  return call === undefined ? [] : [`${call}${holder}/${holder === 'custom' ? 'input' : 'arguments'}`]
}

/** A keep-alive word is a text of its own. */
const isPart = ({ whole, raw }: StreamPiece): boolean => !whole && raw !== 'word'

const slotOf = (text: Omit<TextSlot, 'replace'>): TextSlot => ({
  ...text,
  replace() {
    throw new Error('A streamed answer cannot be rewritten as a whole')
  },
})
