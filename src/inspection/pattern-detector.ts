/**
 * Finds patterns by following all that their automaton can be in at once, character by character: linear in the text,
 * whatever the pattern, and the same for any split of it.
 *
 * What counts is every match, not the leftmost or the longest: together they cover all that a pattern could mean. So for
 * each state the earliest start is enough. Only patterns with a check (a checksum) keep their starts apart, because one
 * start may fail the check where a later one passes.
 *
 * Longer than most: the sets of states, the starts they come from and the work they cost are one scan's state.
 */
import { Failure } from '../failure.ts'
import { contains, words } from './character-set.ts'
import { type Detector, type Match, maxLiveUnits, maxMatchLength, type Scanner } from './detector.ts'
import { foldForPattern } from './fold.ts'
import type { HeldText } from './held-text.ts'
import {
  answersKept,
  type CompiledPattern,
  compileProgram,
  holds,
  type Leaf,
  type Node,
  type Program,
  reads,
} from './pattern-program.ts'
import { type Assertion, readPattern } from './pattern-syntax.ts'
import { remembering } from './remembering.ts'
import { Work } from './work.ts'

export interface PatternSource {
  /** The label of what it finds: `EMAIL`. */
  readonly label: string
  readonly pattern: string
  /** Which entry of the policy it is; the label in lower case where it is left out. */
  readonly entry?: string
  readonly caseInsensitive?: boolean
  /** Whether what matched is really one, by its folded text without ignorable characters. */
  readonly check?: (text: string) => boolean
  /** It describes what is not of this label, though parts of it look so. */
  readonly excludes?: true
}

export interface PatternOptions {
  /** Whether texts come in pieces: then a pattern must bound what it matches. */
  readonly streaming: boolean
  /** The field that a pattern stands in, for failures. */
  readonly paramOf: (index: number) => string
}

/**
 * Compiles patterns into one detector. Throws `invalid_parameter` for one that cannot be read, and `pattern_unbounded`
 * for one that may match more than 512 characters where texts are streams.
 */
export function patternDetector(sources: readonly PatternSource[], { streaming, paramOf }: PatternOptions): Detector {
  const patterns = sources.map(
    ({ label, pattern, entry, caseInsensitive, check, excludes }, index): CompiledPattern => ({
      label,
      entry: entry ?? label.toLowerCase(),
      node: readPattern(pattern, paramOf(index), caseInsensitive),
      check: check ?? null,
      excludes: excludes ?? false,
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
  const starts = new StartTable(program)
  return {
    bounded: program.bounded,
    scanner: (text, work) => new PatternScanner(program, starts, text, work ?? new Work()),
  }
}

/**
 * Where patterns that begin with a character stand after reading it. What precedes it matters only so far as assertions
 * at the beginnings of patterns look at it, so answers are kept by what those say of it.
 */
class StartTable {
  readonly #starts: Node
  readonly #ascii: (readonly Node[] | undefined)[] = new Array(129 * 128)
  /** For each way in which what precedes can matter, the answers about characters beyond ASCII. */
  readonly #others = new Map<string, (codePoint: number) => readonly Node[]>()
  readonly #waysOf: (before: number) => string
  /** Whether a pattern can begin with a character beyond ASCII. */
  readonly #beyondAscii: boolean

  constructor({ starts }: Program) {
    this.#starts = starts
    const looks: Assertion[] = []
    let beyond = false
    const visit = (leaves: readonly Leaf[]) => {
      for (const leaf of leaves) {
        if (leaf.type === 'read') beyond ||= leaf.set.others !== null
        else if (leaf.type === 'assert') {
          looks.push(leaf.assertion)
          visit(leaf.next.leaves)
        }
      }
    }
    visit(starts.leaves)
    this.#beyondAscii = beyond
    const asked = looks.filter(({ at }) => at === 'after')
    const ways = (before: number) => asked.map((look) => (holds(look, before, null) ? '1' : '0')).join('')
    this.#waysOf = remembering(ways, answersKept)
  }

  /** `before` is null at the text's beginning. */
  after(before: number | null, codePoint: number): readonly Node[] {
    if (codePoint < 128 && (before === null || before < 128)) {
      const place = (before === null ? 128 : before) * 128 + codePoint
      let found = this.#ascii[place]
      if (found === undefined) {
        found = this.#find(before, codePoint)
        this.#ascii[place] = found
      }
      return found
    }
    if (codePoint >= 128 && !this.#beyondAscii) return noNodes
    const isWord = before !== null && before < 128 && contains(words, before)
    const way = before === null ? 'start' : `${isWord ? 'w' : 'n'}${this.#waysOf(before)}`
    let known = this.#others.get(way)
    if (known === undefined) {
      known = remembering((asked) => this.#find(before, asked), answersKept)
      if (this.#others.size >= waysKept) this.#others.clear()
      this.#others.set(way, known)
    }
    return known(codePoint)
  }

  #find(before: number | null, codePoint: number): readonly Node[] {
    const nodes = new Set<Node>()
    const visit = (leaves: readonly Leaf[]) => {
      for (const leaf of leaves) {
        if (leaf.type === 'read' && reads(leaf.set, codePoint)) nodes.add(leaf.next)
        else if (leaf.type === 'assert' && holds(leaf.assertion, before, codePoint)) visit(leaf.next.leaves)
      }
    }
    visit(this.#starts.leaves)
    return [...nodes]
  }
}

/** Few patterns look at more than two kinds of characters before them. */
const waysKept = 64
const noNodes: readonly Node[] = []

class PatternScanner implements Scanner {
  overflowAt: number | null = null
  readonly #program: Program
  readonly #startTable: StartTable
  readonly #text: HeldText
  readonly #work: Work
  #position: number
  /** The end of the last character that counts. */
  #lastEnd: number
  /** How far the text has been read, one more where its end is known. */
  #readTo = 0
  #before: number | null = null
  /** Instructions that wait to read, with the start of what each has read. */
  #threads: (Leaf & { type: 'read' })[] = []
  #starts: number[] = []
  #nextThreads: (Leaf & { type: 'read' })[] = []
  #nextStarts: number[] = []
  /** Assertions that wait to see what follows. */
  #waiting: (Leaf & { type: 'assert' })[] = []
  #waitingStarts: number[] = []
  /** Where an instruction stands among the next threads, where the round is this one. */
  readonly #places: Int32Array
  readonly #rounds: Int32Array
  #round = 0
  /** How often threads moved on, and how far the text had been read, since it was last counted. */
  #moves = 0
  #counted = 0
  /** For each next thread, the one before it that waits at the same instruction for another start. */
  readonly #earlier: number[] = []

  constructor(program: Program, startTable: StartTable, text: HeldText, work: Work) {
    this.#work = work
    this.#program = program
    this.#startTable = startTable
    this.#text = text
    this.#position = text.end
    this.#counted = text.end
    this.#lastEnd = text.end
    this.#places = new Int32Array(program.size)
    this.#rounds = new Int32Array(program.size)
  }

  get liveFrom(): number {
    let live = this.#position
    for (const start of this.#starts) if (start < live) live = start
    for (const start of this.#waitingStarts) if (start < live) live = start
    return live
  }

  advance(ended: boolean, found: Match[]): void {
    const text = this.#text
    const end = text.end
    while (this.#position < end && this.overflowAt === null) {
      if (this.#threads.length === 0 && this.#waiting.length === 0) this.#readIdle(end)
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
      else {
        const folded = foldForPattern(codePoint)
        if (folded.length === 0) this.#skip()
        else for (const character of folded) this.#read(character, at, found)
      }
    }
    if (ended && this.overflowAt === null) {
      this.#readTo = end + 1
      this.#resolve(null, found)
    }
  }

  /** The common way: plain characters at which no pattern begins, while none is under way. */
  #readIdle(end: number): void {
    const { text, start } = this.#text
    let position = this.#position
    let before = this.#before
    for (; position < end; position++) {
      const unit = text.charCodeAt(position - start)
      if (unit < 0x20 || unit >= 0x7f || this.#startTable.after(before, unit).length > 0) break
      before = unit
    }
    if (position === this.#position) return
    this.#before = before
    this.#position = position
    this.#lastEnd = position
  }

  #skip(): void {
    if (!this.#program.bounded) return
    const live = this.liveFrom
    if (this.#position - live > maxLiveUnits) this.overflowAt = live
  }

  #read(character: number, at: number, found: Match[]): void {
    this.#readTo = this.#position
    if (this.#waiting.length > 0) this.#resolve(character, found)
    const starting = this.#startTable.after(this.#before, character)
    this.#before = character
    this.#lastEnd = this.#position
    if (this.#threads.length === 0 && starting.length === 0) return
    this.#count()
    this.#begin()
    const threads = this.#threads
    this.#moves += threads.length
    const starts = this.#starts
    for (let index = 0; index < threads.length; index++) {
      const thread = threads[index]
      if (thread !== undefined && reads(thread.set, character)) this.#enter(thread.next, starts[index] ?? 0, found)
    }
    for (const node of starting) this.#enter(node, at, found)
    this.#threads = this.#nextThreads
    this.#starts = this.#nextStarts
    this.#nextThreads = threads
    this.#nextStarts = starts
  }

  #count(): void {
    this.#work.add(this.#moves, this.#position - this.#counted)
    this.#moves = 0
    this.#counted = this.#position
  }

  #begin(): void {
    this.#round++
    this.#nextThreads.length = 0
    this.#nextStarts.length = 0
  }

  /** Assertions that waited for this character, null for the text's end; those that hold go on from before it. */
  #resolve(after: number | null, found: Match[]): void {
    const waiting = this.#waiting
    const starts = this.#waitingStarts
    this.#waiting = []
    this.#waitingStarts = []
    // What they lead to waits to read this character, together with those that already do.
    this.#nextThreads = this.#threads
    this.#nextStarts = this.#starts
    const visit = (leaf: Leaf, start: number): void => {
      if (leaf.type !== 'assert') this.#arrive(leaf, start, found)
      else if (holds(leaf.assertion, this.#before, after)) for (const next of leaf.next.leaves) visit(next, start)
    }
    for (const [index, leaf] of waiting.entries()) visit(leaf, starts[index] ?? 0)
    this.#threads = this.#nextThreads
    this.#starts = this.#nextStarts
    this.#nextThreads = []
    this.#nextStarts = []
  }

  #enter(node: Node, start: number, found: Match[]): void {
    const { leaves } = node
    for (let index = 0; index < leaves.length; index++) {
      const leaf = leaves[index]
      if (leaf === undefined) continue
      if (leaf.type === 'assert') this.#wait(leaf, start, found)
      else this.#arrive(leaf, start, found)
    }
  }

  #wait(leaf: Leaf & { type: 'assert' }, start: number, found: Match[]): void {
    if (leaf.assertion.at !== 'after' && leaf.assertion.at !== 'start') {
      this.#waiting.push(leaf)
      this.#waitingStarts.push(start)
    } else if (holds(leaf.assertion, this.#before, null)) this.#enter(leaf.next, start, found)
  }

  #arrive(leaf: Leaf & { type: 'read' | 'end' }, start: number, found: Match[]): void {
    this.#moves++
    if (leaf.type === 'end') {
      this.#tell(leaf.pattern, start, found)
      return
    }
    const { id } = leaf
    if (this.#rounds[id] === this.#round) {
      const place = this.#places[id] ?? 0
      const known = this.#nextStarts[place] ?? 0
      if (this.#program.patterns[leaf.pattern]?.check === null) {
        if (start < known) this.#nextStarts[place] = start
        return
      }
      for (let index = place; index >= 0; index = this.#earlier[index] ?? -1) {
        this.#moves++
        if (this.#nextStarts[index] === start) return
      }
      this.#earlier[this.#nextThreads.length] = place
    } else this.#earlier[this.#nextThreads.length] = -1
    this.#rounds[id] = this.#round
    this.#places[id] = this.#nextThreads.length
    this.#nextThreads.push(leaf)
    this.#nextStarts.push(start)
  }

  #tell(index: number, start: number, found: Match[]): void {
    const pattern = this.#program.patterns[index]
    if (pattern === undefined) return
    const end = this.#lastEnd
    if (pattern.check !== null && !pattern.check(foldedText(this.#text.slice(start, end)))) return
    const match = { start, end, label: pattern.label, entry: pattern.entry, decidedAt: this.#readTo }
    found.push(pattern.excludes ? { ...match, excludes: true } : match)
  }
}

/** What patterns read of a text. */
export function foldedText(text: string): string {
  if (/^[\x20-\x7e]*$/.test(text)) return text
  let folded = ''
  for (const character of text) folded += String.fromCodePoint(...foldForPattern(character.codePointAt(0) ?? 0))
  return folded
}
