/**
 * How attempts to take over a model are said in a language: words by what they mean, of which `signalsOf` makes patterns.
 * An order is a verb at the beginning of a clause, an object and a scope ("ignore", "instructions", "previous"), so that a
 * report of the same ("the driver ignored the instructions") is none. Words are fragments of patterns, written as
 * `injection-text.ts` folds them: lower case, no accents on Latin letters, no vowel marks of Arabic.
 */
import type { InjectionSignal } from '../injection-signals.ts'

export interface InjectionLanguage {
  /** What an order may stand behind within a sentence: "please", "and", "you must". */
  readonly leads?: readonly string[]
  /** Orders to leave something out of account. */
  readonly ignore: readonly string[]
  /** Which of all: "previous", "all", "your". */
  readonly scope: readonly string[]
  readonly instructions: readonly string[]
  /** Orders and questions that ask for something to be said. */
  readonly reveal: readonly string[]
  /** The model's own instructions: "your system prompt". */
  readonly prompt: readonly string[]
  /** Whole phrases that ask for a password. */
  readonly password: readonly string[]
  /** Whole phrases that say that nothing is forbidden. */
  readonly unrestricted: readonly string[]
  /** Whole phrases that begin another role. */
  readonly takeover: readonly string[]
  /** Orders to leave out of account that stand behind their object. */
  readonly ignoreLast?: readonly string[]
  /** All orders stand behind their object. */
  readonly askLast?: true
  /** What an order to leave out of account is put into data for: "the function", "this text". */
  readonly content?: readonly string[]
  /** Words are not set apart, and nothing tells the beginning of an order. */
  readonly unspaced?: true
}

const gap = '[^.!?\\n。！？।؟]{0,32}'
const anyOf = (words: readonly string[]): string => `(?:${words.join('|')})`

/** Each language's are signals of their own, which share names and weights with those of the others. */
export function signalsOf(language: InjectionLanguage): InjectionSignal[] {
  const { leads = [], content, unspaced, askLast } = language
  const ignoreLast = language.ignoreLast ?? (askLast ? language.ignore : null)
  const clause = '^|[.!?:;,"\'“”«»„()\\[\\]{}#*>\\n¡¿。！？、，；：「『।،؛؟-] ?'
  const lead = unspaced ? '' : `(?:${clause}${leads.map((word) => `|${word}[ ,]{1,2}`).join('')})`
  const [ignore, scope, instructions] = [language.ignore, language.scope, language.instructions].map(anyOf)
  const [reveal, prompt] = [language.reveal, language.prompt].map(anyOf)
  const overriding = [
    `${lead}${ignore}${gap}${scope}${gap}${instructions}`,
    `${lead}${ignore}${gap}${instructions}${gap}${scope}`,
  ]
  const revealing = [`${lead}${reveal}${gap}${prompt}`]
  if (content !== undefined) overriding.push(`${lead}${ignore} ?${anyOf(content)}`)
  if (ignoreLast !== null) overriding.push(`${lead}${scope}${gap}${instructions}${gap}${anyOf(ignoreLast)}`)
  if (askLast) revealing.push(`${prompt}${gap}${reveal}`)
  return [
    { name: 'override_instructions', weight: 0.7, patterns: overriding },
    { name: 'prompt_extraction', weight: 0.6, patterns: revealing },
    { name: 'secret_extraction', weight: 0.6, patterns: language.password },
    { name: 'unrestricted_persona', weight: 0.45, patterns: language.unrestricted },
    { name: 'persona_takeover', weight: 0.25, patterns: language.takeover },
  ].filter(({ patterns }) => patterns.length > 0)
}
