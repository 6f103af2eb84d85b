/** One text on its way through all rules in order: what one lets out, the next one gets. */
import type { TextKind } from '../languages/reading/texts/text-slot.ts'
import { holdsRespelt } from '../lib/json/exact-json.ts'
import { JsonRewriter } from './json-rewriter.ts'
import type { Finding, InspectionRule, Passage, Stop } from './rule.ts'
import { TextRewriter } from './text-rewriter.ts'

interface ChannelText {
  readonly kind: TextKind
  readonly role: string | null
  /** Where the text stands, for findings: `messages`, `0/content`. */
  readonly place: string
}

export class Channel implements Passage {
  stop: Stop | null = null
  readonly #passages: readonly Passage[]

  constructor(rules: readonly InspectionRule[], text: ChannelText, findings: Finding[]) {
    const passage = text.kind === 'tool_arguments' ? JsonRewriter : TextRewriter
    this.#passages = rules
      .filter(({ reads }) => reads === undefined || reads(text))
      .map((rule) => new passage(rule, text.place, findings))
  }

  push(piece: string): string {
    return this.stop === null ? this.#pass(piece, 0, false) : ''
  }

  end(): string {
    return this.stop === null ? this.#pass('', 0, true) : ''
  }

  /**
   * From one rule to the next. Where a rule stops the text, what stands before is the last that the later ones get; where
   * several stop it, what remains is before all of them, and the first in order is the one that counts.
   */
  #pass(piece: string, from: number, last: boolean): string {
    let text = piece
    let ending = last
    for (let index = from; index < this.#passages.length; index++) {
      const passage = this.#passages[index]
      if (passage === undefined) continue
      text = passage.push(text)
      if (ending && passage.stop === null) text += passage.end()
      if (passage.stop !== null) {
        this.stop ??= passage.stop
        ending = true
      }
    }
    return text
  }
}

interface WholeText extends ChannelText {
  readonly text: string
}

/**
 * Whether a rule may find something in a whole text. Arguments with an escape say something else than their letters, and
 * so do those with a number that is printed otherwise.
 */
export const mayFind = (
  { matcher, reads }: Pick<InspectionRule, 'matcher' | 'reads'>,
  text: Omit<WholeText, 'place'>,
): boolean =>
  (reads === undefined || reads(text)) &&
  ((text.kind === 'tool_arguments' && (text.text.includes('\\') || holdsRespelt(text.text))) ||
    matcher.mayMatch(text.text))

/** What goes out of a whole text, and why it stopped, null where it did not. */
export interface PassedWhole {
  readonly text: string
  readonly stop: Stop | null
}

/** Passes a whole text, which most often no rule has to follow. */
export const passWhole = (rules: readonly InspectionRule[], whole: WholeText, findings: Finding[]): PassedWhole =>
  rules.some((rule) => mayFind(rule, whole)) ? followWhole(rules, whole, findings) : { text: whole.text, stop: null }

/** Passes a whole text in which something may be found. */
export function followWhole(rules: readonly InspectionRule[], whole: WholeText, findings: Finding[]): PassedWhole {
  const channel = new Channel(rules, whole, findings)
  const out = channel.push(whole.text)
  return { text: out + channel.end(), stop: channel.stop }
}
