/**
 * Attempts to take over a model in one language: words by their meaning, from which `signalsOf` builds patterns. An
 * order is a verb at the beginning of a clause, an object and a scope ("ignore", "instructions", "previous"), so that
 * a report ("the driver ignored the instructions") does not match. Words are fragments of patterns, in the form that
 * `injection-text.ts` produces: lower case, no accents on Latin letters, no vowel marks of Arabic.
 */
import type { InjectionSignal } from '../injection-signal.ts'

export interface InjectionLanguage {
  /** Words before an order within a sentence: "please", "and", "you must". */
  readonly leads?: readonly string[]
  /** Orders to disregard something. */
  readonly ignore: readonly string[]
  /** The scope: "previous", "all", "your". */
  readonly scope: readonly string[]
  readonly instructions: readonly string[]
  /** Orders and questions that ask the model to say something. */
  readonly reveal: readonly string[]
  /** The model's own instructions: "your system prompt". */
  readonly prompt: readonly string[]
  /** Whole phrases that ask for a password. */
  readonly password: readonly string[]
  /** Whole phrases that say that nothing is forbidden. */
  readonly unrestricted: readonly string[]
  /** Whole phrases that start another role. */
  readonly takeover: readonly string[]
  /** Orders to disregard that follow their object. */
  readonly ignoreLast?: readonly string[]
  /** All orders follow their object. */
  readonly askLast?: true
  /**
   * The instructions given to the model: "everything that they told you". The writer's own words are excluded: people
   * correct themselves.
   */
  readonly toldModel?: readonly string[]
  /** The carrier of an order hidden in data: "the function", "the text above". */
  readonly containers?: readonly string[]
  /** "And": an order to disregard a container counts as an attempt if an order to say something follows. */
  readonly conjunctions?: readonly string[]
  /** Words are not separated, and nothing marks the beginning of an order. */
  readonly unspaced?: true
}

const gap = '[^.!?\\n。！？।؟]{0,32}'
/**
 * The text between an order, its object and its scope. A comma ends it: "forget my last message, I asked about the
 * rules".
 */
const gapInClause = '[^.!?,;:\\n。！？，；：।؟،]{0,32}'
const anyOf = (words: readonly string[]): string => `(?:${words.join('|')})`

/** Each language has signals of its own, with the same names and weights as the others. */
export function signalsOf(language: InjectionLanguage): InjectionSignal[] {
  const { leads = [], toldModel, containers, conjunctions = [], unspaced, askLast } = language
  const ignoreLast = language.ignoreLast ?? (askLast ? language.ignore : null)
  const clause = '^|[.!?:;,"\'“”«»„()\\[\\]{}#*>\\n¡¿。！？、，；：「『।،؛؟-] ?'
  const lead = unspaced ? '' : `(?:${clause}${leads.map((word) => `|${word}[ ,]{1,2}`).join('')})`
  const [ignore, scope, instructions] = [language.ignore, language.scope, language.instructions].map(anyOf)
  const [reveal, prompt] = [language.reveal, language.prompt].map(anyOf)
  const overriding = [
    `${lead}${ignore}${gapInClause}${scope}${gapInClause}${instructions}`,
    `${lead}${ignore}${gapInClause}${instructions}${gapInClause}${scope}`,
  ]
  const revealing = [`${lead}${reveal}${gap}${prompt}`]
  if (toldModel !== undefined) overriding.push(`${lead}${ignore}[ ,]{0,2}${anyOf(toldModel)}`)
  if (containers !== undefined) {
    overriding.push(`${lead}${ignore} ?${anyOf(containers)}[,;]? ?${anyOf(conjunctions)} ?${reveal}`)
  }
  if (ignoreLast !== null) {
    overriding.push(`${lead}${scope}${gapInClause}${instructions}${gapInClause}${anyOf(ignoreLast)}`)
  }
  if (askLast) revealing.push(`${prompt}${gap}${reveal}`)
  return [
    { name: 'override_instructions', weight: 0.7, patterns: overriding },
    { name: 'prompt_extraction', weight: 0.6, patterns: revealing },
    { name: 'secret_extraction', weight: 0.6, patterns: language.password },
    { name: 'unrestricted_persona', weight: 0.45, patterns: language.unrestricted },
    { name: 'persona_takeover', weight: 0.25, patterns: language.takeover },
  ].filter(({ patterns }) => patterns.length > 0)
}
