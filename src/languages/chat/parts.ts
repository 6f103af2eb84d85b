/**
 * A chat stream separates the parts of an answer by their order: thoughts, text, a refusal or a call end the part of
 * words before them (`read-stream.ts`). If text of such a stream is held back before translation, it must be released
 * while its part is current. So each part is a channel of its own here, which ends where the next begins. Calls
 * continue in parallel to the end. A call begins with its first arguments, so if all arguments are held back, words
 * that follow them come first.
 */
import type { StreamPiece, StreamReader } from '../dialect.ts'

type Turn = 'thought' | 'text' | 'refusal' | 'call'

/** The order in which the parts of one frame are read. */
const turns: readonly (readonly [Turn, RegExp])[] = [
  // A part of the content has its type after the `~`.
  ['thought', /^\d+\/(reasoning|content~(thinking|reasoning|summary))/],
  ['text', /^\d+\/content($|~(?!thinking|reasoning|summary|refusal))/],
  ['refusal', /^\d+\/(content~)?refusal/],
  ['call', /^\d+\/tool_calls\b/],
]

/** The same reader, with each part of words as a channel. */
export function inParts(reader: StreamReader): Pick<StreamReader, 'open' | 'delta'> {
  let turn: Turn | null = null
  /** The reader's own channels, by the name that each of their parts has or had. */
  const known = new Map<string, string>()
  /** The names of the current parts, by the reader's channel. */
  const open = new Map<string, string>()

  const nameOf = (channel: string): string => {
    const name = open.get(channel) ?? (known.has(channel) ? `${channel}.${known.size}` : channel)
    open.set(channel, name)
    known.set(name, channel)
    return name
  }

  return {
    open(frame) {
      const opened = reader.open(frame)
      if (opened === null) return null
      const names = new Map<StreamPiece, string>()
      const ends: string[] = []
      for (const [next, channels] of turns) {
        const pieces = opened.pieces.filter(({ channel }) => channels.test(channel))
        if (pieces.length === 0) continue
        if (next !== turn) {
          ends.push(...open.values())
          open.clear()
        }
        turn = next
        if (next === 'call') continue
        for (const piece of pieces) if (!piece.whole) names.set(piece, nameOf(piece.channel))
      }
      if (names.size === 0 && ends.length === 0 && opened.ends.length === 0) return opened
      ends.push(...opened.ends.map((channel) => open.get(channel) ?? channel))
      const pieces = opened.pieces.map((piece) => {
        const channel = names.get(piece) ?? piece.channel
        return { ...piece, channel, replace: (instead: string) => piece.replace(instead) }
      })
      return { pieces, ends, contradicts: opened.contradicts === true, bytes: () => opened.bytes() }
    },
    delta: (channel, text) => reader.delta(known.get(channel) ?? channel, text),
  }
}
