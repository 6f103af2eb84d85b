/** One text on its way through all rules in order: what one lets out, the next one gets. */
import type { TextKind } from '../dialects/dialect.ts'
import { ArgumentsPassage } from './arguments-passage.ts'
import { PlainPassage } from './plain-passage.ts'
import type { Finding, InspectionRule, Passage, Stop } from './rule.ts'

export interface ChannelText {
  readonly kind: TextKind
  readonly role: string | null
  /** Where the text stands, for findings: `messages`, `0/content`. */
  readonly place: string
}

export class Channel implements Passage {
  stop: Stop | null = null
  readonly #passages: readonly Passage[]

  constructor(rules: readonly InspectionRule[], text: ChannelText, findings: Finding[]) {
    const passage = text.kind === 'tool_arguments' ? ArgumentsPassage : PlainPassage
    this.#passages = rules
      .filter(({ reads }) => reads === undefined || reads(text))
      .map((rule) => new passage(rule, text.place, findings))
  }

  get holds(): boolean {
    return this.#passages.some(({ holds }) => holds)
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

/** Passes a whole text; gives what goes out and why it stopped, null where it did not. */
export function passWhole(
  rules: readonly InspectionRule[],
  text: ChannelText & { text: string },
  findings: Finding[],
): { text: string; stop: Stop | null } {
  const channel = new Channel(rules, text, findings)
  const out = channel.push(text.text)
  return { text: out + channel.end(), stop: channel.stop }
}
