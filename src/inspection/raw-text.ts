/**
 * Data of a stream that is no JSON, frame by frame: a word that keeps the line open, or the text of a provider that
 * streams it plain. Each frame's data leaves whole and in its place, or says what was found instead.
 *
 * 1. Frames that follow each other are one text on its way through the rules. One whose end may still become a match
 *    waits, whole, with those behind it. Where something was found, the first that waits says what is left of all.
 * 2. The text ends with a frame that is none of these or came as another event, and with a word that keeps the line
 *   open:
 *    it leaves at once.
 * 3. What comes then is another text, and is also read together with what came before, with the words and without them,
 *    and with what came as the same event alone, there without the ends of lines of data. A match that begins in the one
 *    and ends in the other, or is one only behind it, stops the stream, or is replaced with the whole frame that completes
 *    it, as its rule has it. What such a match begins with has gone by then.
 */
import type { StreamPiece } from '../languages/dialect.ts'
import { Channel } from './channel.ts'
import { maxLiveUnits } from './detectors/detector.ts'
import type { Found } from './detectors/text-matcher.ts'
import { type Finding, type InspectionRule, type Stop, stopFor } from './rule.ts'

/** The end of a text, which goes on. */
const gathered = (text: string, more: string): string =>
  (text.length > 2 * maxLiveUnits ? text.slice(-maxLiveUnits) : text) + more

/** So many events are told apart; further ones are one. */
const eventsKept = 16

const foundIn = (text: string, { matcher }: InspectionRule): readonly Found[] =>
  matcher.follow().push(text, true).matches

export class RawText {
  readonly channel: string
  stop: Stop | null = null
  /** What waits, in order. */
  #waiting: StreamPiece[] = []
  /** What was let out of them, or of what stood before them, and is in no frame yet. */
  #said = ''
  readonly #rules: readonly InspectionRule[]
  readonly #findings: Finding[]
  #passage: Channel
  /** The end of the texts that have ended, with the words that keep the line open, and without them. */
  #came = ''
  #cameWithoutWords = ''
  /** What came without words as each event, without the ends of its lines of data. */
  readonly #cameAs = new Map<string, string>()
  /** The event as which the last text came. */
  #event = ''
  /** What has come since; null while nothing has. */
  #since: string | null = null
  /** The same without the ends of its lines of data. */
  #sinceUnlined = ''

  constructor(channel: string, rules: readonly InspectionRule[], findings: Finding[]) {
    this.channel = channel
    this.#rules = rules
    this.#findings = findings
    this.#passage = this.#begun()
  }

  /** The first that waits; null where none does. */
  get first(): StreamPiece | null {
    return this.#waiting[0] ?? null
  }

  /** Whether a frame's data goes on with the text that came last, and does not end it. */
  goesOnWith = ({ raw, event }: StreamPiece): boolean =>
    raw === 'text' && (this.#since === null || this.#known(event) === this.#event)

  /**
   * Takes the data of the next frame; `ends`: no text follows it. False where a stop leaves nothing of it to be sent.
   */
  push(piece: StreamPiece, ends: boolean): boolean {
    const isWord = piece.raw === 'word'
    const endsHere = ends || isWord
    this.#waiting.push(piece)
    this.#since = gathered(this.#since ?? '', piece.text)
    this.#sinceUnlined = gathered(this.#sinceUnlined, piece.inLines ? piece.text.replaceAll('\n', '') : piece.text)
    if (!isWord) this.#event = this.#known(piece.event)
    if (this.#isFoundAcross(this.#came) || (!isWord && this.#isFoundAcrossText())) return this.stop === null
    this.#said += this.#passage.push(piece.text)
    if (endsHere && this.#passage.stop === null) this.#said += this.#passage.end()
    const altered = this.#settle(endsHere || this.#passage.stop !== null)
    if (this.stop !== null) return altered === piece
    if (endsHere) this.#conclude(isWord)
    return true
  }

  /** Nothing follows on it: nothing waits any longer. Gives what is left where that fits in no frame. */
  end(): string {
    if (this.#since === null) return ''
    this.#said += this.#passage.end()
    this.#settle(true)
    this.#conclude(false)
    const rest = this.#said
    this.#said = ''
    return rest
  }

  #known = (event = ''): string => (this.#cameAs.has(event) || this.#cameAs.size < eventsKept ? event : '')

  #isFoundAcrossText(): boolean {
    const cameAs = this.#cameAs.get(this.#event) ?? ''
    if (this.#isFoundAcross(this.#cameWithoutWords)) return true
    const isSame = cameAs === this.#cameWithoutWords && this.#sinceUnlined === this.#since
    return !isSame && this.#isFoundAcross(cameAs, this.#sinceUnlined)
  }

  #conclude(isWord: boolean): void {
    const since = this.#since ?? ''
    this.#came = (this.#came + since).slice(-maxLiveUnits)
    if (!isWord) {
      this.#cameWithoutWords = (this.#cameWithoutWords + since).slice(-maxLiveUnits)
      this.#cameAs.set(this.#event, ((this.#cameAs.get(this.#event) ?? '') + this.#sinceUnlined).slice(-maxLiveUnits))
    }
    this.#since = null
    this.#sinceUnlined = ''
    this.#passage = this.#begun()
  }

  #begun(): Channel {
    return new Channel(this.#rules, { kind: 'content', role: null, place: this.channel }, this.#findings)
  }

  /**
   * Gives what was let out to the frames that it is the whole of; what differs from them to the first of the others,
   * which it gives back where that says something.
   */
  #settle(ended: boolean): StreamPiece | null {
    this.stop ??= this.#passage.stop
    let last: StreamPiece | null = null
    for (let { first } = this; first !== null && this.#said.startsWith(first.text); { first } = this) {
      this.#said = this.#said.slice(first.text.length)
      last = first
      this.#waiting.shift()
    }
    const { first } = this
    if (first === null && last !== null && this.#said !== '') {
      last.replace(last.text + this.#said)
      this.#said = ''
      return last
    }
    if (first === null || !(ended || !first.text.startsWith(this.#said))) return null
    const altered = this.#said === '' ? null : first
    this.#replaceWaiting(this.#said)
    return altered
  }

  #replaceWaiting(text: string): void {
    for (const [index, piece] of this.#waiting.entries()) piece.replace(index === 0 ? text : '')
    this.#waiting = []
    this.#said = ''
  }

  /** Whether a rule applies to what came since, but only together with what came before; if so it has been applied. */
  #isFoundAcross(came: string, since = this.#since ?? ''): boolean {
    const isUnlined = since !== this.#since
    if (!isUnlined && (came === '' || since.length >= maxLiveUnits)) return false
    const both = came + since
    for (const rule of this.#rules) {
      const { matcher, policyId, reads, enforced } = rule
      // What puts values back is no policy's: half of a placeholder stays one.
      if (policyId === '' || reads?.({ kind: 'content', role: null, place: '' }) === false || !matcher.mayMatch(both))
        continue
      const alone = new Set(foundIn(this.#since ?? '', rule).map(({ start }) => came.length + start))
      const all = foundIn(both, rule).filter(({ end }) => end > came.length)
      // Without the line ends the same ones stand elsewhere: more of them are others.
      const others = isUnlined ? all.slice(alone.size) : all.filter(({ start }) => !alone.has(start))
      const [found] = others
      if (found === undefined) continue
      const { label, entry, start, end } = found
      this.#findings.push({ rule, place: this.channel, label, entry, start, end })
      if (!enforced) continue
      this.stop = stopFor(rule, found)
      // What waits before it then never leaves.
      if (this.stop === null) this.#replaceWaiting(rule.replacement(found, both.slice(start, end)))
      this.#conclude(false)
      return true
    }
    return false
  }
}
