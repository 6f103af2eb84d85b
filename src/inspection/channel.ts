/** One text on its way through all rules in order: the output of one rule is the input of the next. */
import type { TextKind } from '../languages/reading/texts/text-slot.ts'
import { holdsRespelt } from '../lib/json/exact-json.ts'
import { JsonRewriter } from './json-rewriter.ts'
import type { Finding, InspectionRule, Passage, Stop } from './rule.ts'
import { TextRewriter } from './text-rewriter.ts'

interface ChannelText {
  readonly kind: TextKind
  readonly role: string | null
  /** The text's place, for findings: `messages`, `0/content`. */
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
   * From one rule to the next. If a rule stops the text, later rules only get the text before that point. If several
   * stop it, the remaining text ends before all of those points, and the first rule in order counts.
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
 * Whether a rule may find something in a whole text. The meaning of arguments differs from their letters if they
 * contain an escape, or a number that is printed in another form.
 */
export const mayFind = ({ matcher, reads }: Pick<InspectionRule, 'matcher' | 'reads'>, text: WholeText): boolean =>
  (reads === undefined || reads(text)) && mayMatch(matcher, text)

/** The same for one that it reads. */
export const mayMatch = (
  matcher: InspectionRule['matcher'],
  { kind, text }: Pick<WholeText, 'kind' | 'text'>,
): boolean => (kind === 'tool_arguments' && (text.includes('\\') || holdsRespelt(text))) || matcher.mayMatch(text)

/** The output of a whole text, and why it stopped, or null. */
export interface PassedWhole {
  readonly text: string
  readonly stop: Stop | null
}

/** Passes a whole text; most often no rule has to follow it. */
export const passWhole = (rules: readonly InspectionRule[], whole: WholeText, findings: Finding[]): PassedWhole =>
  rules.some((rule) => mayFind(rule, whole)) ? followWhole(rules, whole, findings) : { text: whole.text, stop: null }

/** Passes a whole text in which something may be found. */
export function followWhole(rules: readonly InspectionRule[], whole: WholeText, findings: Finding[]): PassedWhole {
  const channel = new Channel(rules, whole, findings)
  const out = channel.push(whole.text)
  return { text: out + channel.end(), stop: channel.stop }
}
