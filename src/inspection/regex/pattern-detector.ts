/**
 * Finds patterns by following all that their automaton can be in at once, character by character: linear in the text,
 * whatever the pattern, and the same for any split of it. Steps that were taken once are looked up (`lazy-dfa.ts`).
 *
 * What counts is every match, not the leftmost or the longest: together they cover all that a pattern could mean. So for
 * each state the earliest start is enough. Only patterns with a check (a checksum) keep their starts apart, because one
 * start may fail the check where a later one passes.
 *
 * Longer than most: where a scan stands, by learned steps or by its own walk, and the work it costs are one state.
 */
import { Failure } from '../../failure.ts'
import type { BufferedText } from '../buffered-text.ts'
import { type Detector, type Match, maxLiveUnits, maxMatchLength, type Scanner } from '../detectors/detector.ts'
import { foldForPattern } from '../folding/fold.ts'
import { WorkBudget } from '../work-budget.ts'
import { LazyDfa, type PatternState } from './lazy-dfa.ts'
import { type Ending, NfaSimulation } from './nfa-simulation.ts'
import { type CompiledPattern, compileProgram, type Program } from './pattern-program.ts'
import { patternScreen } from './pattern-screen.ts'
import { StartTable } from './pattern-starts.ts'
import { readPattern } from './pattern-syntax.ts'

export interface PatternSource {
  /** The label of what it finds: `EMAIL`. */
  readonly label: string
  readonly pattern: string
  /** Which entry of the policy it is; the label in lower case where it is left out. */
  readonly entry?: string
  readonly caseInsensitive?: boolean
  /** Whether what matched is really one, by its folded text without ignorable characters. */
  readonly check?: (text: string) => boolean
  /** The last character that it matches is no part of what it finds: it only shows what follows. */
  readonly endsBefore?: true
}

interface PatternOptions {
  /** Whether texts come in pieces: then a pattern must bound what it matches. */
  readonly streaming: boolean
  /** The field that a pattern stands in, for failures. */
  readonly paramOf: (index: number) => string
  /** How much is kept of what was learned about texts; 0 learns nothing, which is slower and the same. */
  readonly stepsKept?: number
}

/**
 * Compiles patterns into one detector. Throws `invalid_parameter` for one that cannot be read, and `pattern_unbounded`
 * for one that may match more than 512 characters where texts are streams.
 */
export function patternDetector(
  sources: readonly PatternSource[],
  { streaming, paramOf, stepsKept }: PatternOptions,
): Detector {
  const patterns = sources.map(
    ({ label, pattern, entry, caseInsensitive, check, endsBefore }, index): CompiledPattern => ({
      label,
      entry: entry ?? label.toLowerCase(),
      node: readPattern(pattern, paramOf(index), caseInsensitive),
      check: check ?? null,
      endsBefore: endsBefore ?? false,
    }),
  )
  const program = compileProgram(patterns, paramOf)
  if (streaming && !program.bounded) {
    const unbounded = patterns.findIndex(
      (_, index) => !compileProgram(patterns.slice(index, index + 1), paramOf).bounded,
    )
    throw new Failure('pattern_unbounded', {
      message: `A pattern for streams matches at most ${maxMatchLength} characters: write {0,40} instead of *`,
      param: paramOf(unbounded),
    })
  }
  const startTable = new StartTable(program)
  const shared = { program, startTable, states: new LazyDfa(program, startTable, stepsKept) }
  return {
    bounded: program.bounded,
    mayMatch: patternScreen(patterns.map(({ node }) => node)),
    scanner: (text, work) => new PatternScanner(shared, text, work ?? new WorkBudget()),
  }
}

/** What all scans of a program have in common. */
interface Shared {
  readonly program: Program
  readonly startTable: StartTable
  readonly states: LazyDfa
}

class PatternScanner implements Scanner {
  overflowAt: number | null = null
  readonly #program: Program
  readonly #startTable: StartTable
  readonly #states: LazyDfa
  readonly #text: BufferedText
  readonly #work: WorkBudget
  #position: number
  /** The end of the last character that counts, and that character. */
  #lastEnd: number
  #before: number | null = null
  /** How far the text has been read, one more where its end is known. */
  #readTo = 0
  /** Where it stands; null while a walk of its own does, or nothing is under way. */
  #state: PatternState | null = null
  /** What its ranks are; the earliest first. */
  #starts: number[] = []
  #nextStarts: number[] = []
  /** What takes the steps that are not worth learning. */
  #walk: NfaSimulation | null = null
  #walking = false
  /** Steps since it last was decided whether to learn, and how many of these had to be learned. */
  #steps = 0
  #learned = 0
  /** How often threads moved on, and how far the text had been read, since it was last counted. */
  #moves = 0
  #counted = 0

  constructor({ program, startTable, states }: Shared, text: BufferedText, work: WorkBudget) {
    this.#work = work
    this.#program = program
    this.#startTable = startTable
    this.#states = states
    this.#text = text
    this.#position = text.end
    this.#counted = text.end
    this.#lastEnd = text.end
    this.#walking = !states.learns
  }

  get liveFrom(): number {
    if (!this.#walking) return this.#starts[0] ?? this.#position
    let live = this.#position
    const { starts = [], waitingStarts = [] } = this.#walk ?? {}
    for (const start of starts) if (start < live) live = start
    for (const start of waitingStarts) if (start < live) live = start
    return live
  }

  get #isIdle(): boolean {
    if (!this.#walking) return this.#state === null
    return this.#walk === null || (this.#walk.threads.length === 0 && this.#walk.waiting.length === 0)
  }

  advance(ended: boolean, found: Match[]): void {
    const text = this.#text
    const end = text.end
    while (this.#position < end && this.overflowAt === null) {
      if (this.#isIdle) this.#readIdle()
      if (this.#position >= end) break
      const at = this.#position
      const unit = text.unitAt(at)
      let codePoint = unit
      if (unit >= 0xd800 && unit < 0xdc00) {
        if (at + 1 >= end) {
          if (!ended) return
        } else {
          const low = text.unitAt(at + 1)
          if (low >= 0xdc00 && low < 0xe000) codePoint = (unit - 0xd800) * 0x400 + low - 0xdc00 + 0x10000
        }
      }
      this.#position = at + (codePoint > 0xffff ? 2 : 1)
      if (codePoint >= 0x20 && codePoint < 0x7f) this.#read(codePoint, at, found)
      else this.#readFolded(foldForPattern(codePoint), at, found)
    }
    if (ended && this.overflowAt === null) {
      this.#readTo = end + 1
      if (this.#isIdle) return
      const walk = this.#asWalk()
      walk.end()
      this.#tell(walk.endings, null, found)
    }
  }

  /** The common way: plain characters at which no pattern begins, while none is under way. */
  #readIdle(): void {
    const { last, lastStart, end } = this.#text
    let position = this.#position
    if (position < lastStart) return
    let before = this.#before
    for (; position < end; position++) {
      const unit = last.charCodeAt(position - lastStart)
      if (unit < 0x20 || unit >= 0x7f || this.#startTable.after(before, unit).length > 0) break
      before = unit
    }
    if (position === this.#position) return
    this.#before = before
    this.#position = position
    this.#lastEnd = position
  }

  /** Several characters of one stand at the same place, which ranks cannot say. */
  #readFolded(folded: readonly number[], at: number, found: Match[]): void {
    const [only] = folded
    if (only === undefined || folded.length === 1) {
      if (only === undefined) this.#skip()
      else this.#read(only, at, found)
      return
    }
    const wasWalking = this.#walking
    this.#asWalk()
    for (const character of folded) this.#step(character, at, found)
    if (!wasWalking) this.#asState()
  }

  #skip(): void {
    if (!this.#program.bounded) return
    const live = this.liveFrom
    if (this.#position - live > maxLiveUnits) this.overflowAt = live
  }

  #read(character: number, at: number, found: Match[]): void {
    if (this.#walking) this.#step(character, at, found)
    else this.#follow(character, at, found)
    this.#steps++
    if (this.#steps >= trialSteps) this.#decideWhetherToLearn()
  }

  /** Takes a learned step. */
  #follow(character: number, at: number, found: Match[]): void {
    this.#readTo = this.#position
    const state = this.#state ?? this.#idleState()
    const place = this.#states.classOf(character)
    let step = state.steps[place]
    if (step === undefined) {
      // To learn a step costs several times what it takes, all the more where very much is under way.
      this.#learned += 1 + state.threads.length / manyThreads
      step = this.#states.learn(state, character, place)
      if (this.#learned > trialSteps) this.#steps = trialSteps
    }
    this.#before = character
    this.#moves += step.resolving
    if (!step.idle) {
      this.#count()
      this.#moves += step.moves
    }
    const starts = this.#starts
    if (step.endings.length > 0) {
      starts[state.starts] = at
      this.#tell(step.endings, starts, found)
      starts.length = state.starts
    }
    this.#lastEnd = this.#position
    this.#state = step.next.threads.length === 0 && step.next.waiting.length === 0 ? null : step.next
    if (!step.same) this.#takeStarts(step.sources, state.starts, at)
  }

  #takeStarts(sources: readonly number[], fresh: number, at: number): void {
    const starts = this.#starts
    const next = this.#nextStarts
    next.length = sources.length
    for (let rank = 0; rank < sources.length; rank++) {
      const source = sources[rank] ?? 0
      next[rank] = source === fresh ? at : (starts[source] ?? 0)
    }
    this.#starts = next
    this.#nextStarts = starts
  }

  /** Takes a step that is not learned. */
  #step(character: number, at: number, found: Match[]): void {
    this.#readTo = this.#position
    const walk = this.#asWalk()
    const isIdle = !walk.step(character, at)
    this.#before = character
    this.#moves += walk.resolving
    if (!isIdle) {
      this.#count()
      this.#moves += walk.moves
    }
    this.#tell(walk.endings, null, found)
    this.#lastEnd = this.#position
  }

  #count(): void {
    this.#work.add(this.#moves, this.#position - this.#counted)
    this.#moves = 0
    this.#counted = this.#position
  }

  /** Text that leads on and on to what was never seen is not worth learning, for a while. */
  #decideWhetherToLearn(): void {
    const { learns } = this.#states
    if (this.#walking) {
      if (learns && this.#steps >= restSteps) this.#asState()
      else return
    } else if (this.#learned * 4 > this.#steps) this.#asWalk()
    this.#steps = 0
    this.#learned = 0
  }

  #idleState(): PatternState {
    return this.#states.idle(this.#before)
  }

  #asWalk(): NfaSimulation {
    this.#walk ??= new NfaSimulation(this.#program, this.#startTable)
    if (this.#walking) {
      // While nothing is under way it is the scanner that reads.
      this.#walk.before = this.#before
      return this.#walk
    }
    this.#walking = true
    this.#states.load(this.#walk, this.#state ?? this.#idleState(), this.#starts, this.#before)
    return this.#walk
  }

  #asState(): void {
    if (this.#walk === null) return
    this.#walking = false
    const { state, starts } = this.#states.stateOf(this.#walk)
    this.#state = starts.length === 0 ? null : state
    this.#starts = starts
  }

  /** Tells what ended; `starts` are those of the ranks, null where the endings have them. */
  #tell(endings: readonly Ending[], starts: readonly number[] | null, found: Match[]): void {
    for (const { pattern: index, start: told, before } of endings) {
      const pattern = this.#program.patterns[index]
      if (pattern === undefined) continue
      const start = starts === null ? told : (starts[told] ?? 0)
      const end = before ? this.#lastEnd : this.#position
      if (pattern.check !== null && !pattern.check(foldedText(this.#text.slice(start, end)))) continue
      const foundEnd = pattern.endsBefore ? end - 1 : end
      found.push({ start, end: foundEnd, label: pattern.label, entry: pattern.entry, decidedAt: this.#readTo })
    }
  }
}

/** After how many steps it is decided anew whether learning pays, and how long it rests where it does not. */
const trialSteps = 256
const restSteps = 16_384
const manyThreads = 8

/** What patterns read of a text. */
function foldedText(text: string): string {
  if (/^[\x20-\x7e]*$/.test(text)) return text
  let folded = ''
  for (const character of text) folded += String.fromCodePoint(...foldForPattern(character.codePointAt(0) ?? 0))
  return folded
}
