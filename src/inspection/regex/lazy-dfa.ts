/**
 * The steps of a program's walk, learned as texts need them: a lazily built deterministic automaton (Aho, Sethi and
 * Ullman, Compilers, section 3.7; with a bounded memory as RE2 has it), so that ordinary text costs one look-up for a
 * character instead of a step of every thread.
 *
 * A state is where a walk stands, its starts replaced by their ranks, the earliest first. A step leads to another state
 * and says from which rank, or from the character itself, each start of that comes. So starts are kept exactly, and a
 * scan by learned steps tells the same as the walk.
 *
 * Characters that no set and no assertion of the program tells apart are one class. What is learned is shared by all
 * texts; when it exceeds its bound all of it is forgotten, and those who stand somewhere go on from there.
 */

import { memoized } from '../folding/memoize.ts'
import { type CharacterSet, contains, words } from './character-set.ts'
import { type Asserting, type Ending, NfaSimulation, type Reading } from './nfa-simulation.ts'
import { answersKept, type FastSet, type Leaf, type Node, type Program, reads } from './pattern-program.ts'
import type { StartTable } from './pattern-starts.ts'

export interface PatternState {
  readonly threads: readonly Reading[]
  readonly ranks: readonly number[]
  readonly waiting: readonly Asserting[]
  readonly waitingRanks: readonly number[]
  /** How many different starts there are. */
  readonly starts: number
  readonly before: number | null
  /** Learned steps, by the class of the character. */
  readonly steps: (PatternStep | undefined)[]
}

interface PatternStep {
  readonly next: PatternState
  /** For each rank of the next state where its start comes from; the state's `starts` stands for the character. */
  readonly sources: readonly number[]
  /** The starts stay as they are. */
  readonly same: boolean
  readonly endings: readonly Ending[]
  readonly resolving: number
  readonly moves: number
  /** Nothing was or is under way. */
  readonly idle: boolean
}

/** How much is kept, in threads and steps: at most some megabytes. */
const defaultKept = 60_000

export class LazyDfa {
  readonly #program: Program
  readonly #walk: NfaSimulation
  readonly #kept: number
  #states = new Map<string, PatternState>()
  /** Where nothing is under way, by the class of what precedes. */
  #idle: (PatternState | undefined)[] = []
  #weight = 0
  readonly #classes = new Map<string, number>()
  readonly #asciiClasses = new Int16Array(128).fill(-1)
  readonly #wideClass: (codePoint: number) => number
  #tests: readonly ((codePoint: number) => boolean)[] | null = null

  constructor(program: Program, startTable: StartTable, kept = defaultKept) {
    this.#program = program
    this.#walk = new NfaSimulation(program, startTable)
    this.#kept = kept
    this.#wideClass = memoized((codePoint) => this.#findClass(codePoint), answersKept)
  }

  /** Whether steps are learned at all. */
  get learns(): boolean {
    return this.#kept > 0
  }

  classOf(codePoint: number): number {
    if (codePoint >= 128) return this.#wideClass(codePoint)
    const known = this.#asciiClasses[codePoint] ?? -1
    if (known >= 0) return known
    const found = this.#findClass(codePoint)
    this.#asciiClasses[codePoint] = found
    return found
  }

  #findClass(codePoint: number): number {
    this.#tests ??= testsOf(this.#program)
    let signature = ''
    for (const test of this.#tests) signature += test(codePoint) ? '1' : '0'
    const known = this.#classes.get(signature)
    if (known !== undefined) return known
    this.#classes.set(signature, this.#classes.size)
    return this.#classes.size - 1
  }

  /** Where a walk stands, and the starts of its ranks. */
  stateOf(walk: NfaSimulation): { state: PatternState; starts: number[] } {
    const starts = [...new Set([...walk.starts, ...walk.waitingStarts])].sort((one, other) => one - other)
    const rankOf = (start: number) => starts.indexOf(start)
    const ranks = walk.starts.map(rankOf)
    const waitingRanks = walk.waitingStarts.map(rankOf)
    const place = walk.before === null ? -1 : this.classOf(walk.before)
    let key = String(place)
    for (const [index, { id }] of walk.threads.entries()) key += ` ${id}:${ranks[index]}`
    key += '|'
    for (const [index, { id }] of walk.waiting.entries()) key += ` ${id}:${waitingRanks[index]}`
    let state = this.#states.get(key)
    if (state === undefined) {
      const { threads, waiting, before } = walk
      state = {
        threads: [...threads],
        ranks,
        waiting: [...waiting],
        waitingRanks,
        starts: starts.length,
        before,
        steps: [],
      }
      this.#keep(threads.length + waiting.length + 1)
      this.#states.set(key, state)
    }
    return { state, starts }
  }

  /** Where nothing is under way, after a character. */
  idle(before: number | null): PatternState {
    const place = before === null ? 0 : this.classOf(before) + 1
    const known = this.#idle[place]
    if (known !== undefined) return known
    const walk = this.#walk
    walk.stand({ threads: [], starts: [], waiting: [], waitingStarts: [], before })
    const { state } = this.stateOf(walk)
    this.#idle[place] = state
    return state
  }

  #keep(weight: number): void {
    this.#weight += weight
    if (this.#weight <= this.#kept) return
    this.#states = new Map()
    this.#idle = []
    this.#weight = weight
  }

  /** Puts a walk where a state is, with these starts. */
  load(
    walk: NfaSimulation,
    { threads, ranks, waiting, waitingRanks }: PatternState,
    starts: readonly number[],
    before: number | null,
  ): void {
    const startOf = (rank: number) => starts[rank] ?? 0
    walk.stand({
      threads: [...threads],
      starts: ranks.map(startOf),
      waiting: [...waiting],
      waitingStarts: waitingRanks.map(startOf),
      before,
    })
  }

  /** Learns the step of a state for a character of a class. */
  learn(state: PatternState, character: number, place: number): PatternStep {
    const walk = this.#walk
    const identity = Array.from({ length: state.starts }, (_, rank) => rank)
    this.load(walk, state, identity, state.before)
    const idle = !walk.step(character, state.starts)
    const { endings, resolving, moves } = walk
    const { state: next, starts: sources } = this.stateOf(walk)
    const same = sources.length === state.starts && sources.every((source, rank) => source === rank)
    const step = { next, sources, same, endings, resolving, moves, idle }
    state.steps[place] = step
    this.#keep(sources.length + endings.length + 1)
    return step
  }
}

/** What a program asks about characters: its sets, those of its assertions, and whether one is of a word. */
function testsOf(program: Program): ((codePoint: number) => boolean)[] {
  const asked = new Set<FastSet | CharacterSet>([words])
  const seen = new Set<Node>()
  const nodes: Node[] = [program.starts]
  const look = (leaf: Leaf) => {
    if (leaf.type === 'end') return
    if (leaf.type === 'read') asked.add(leaf.set)
    else if ('set' in leaf.assertion) asked.add(leaf.assertion.set)
    nodes.push(leaf.next)
  }
  for (let node = nodes.pop(); node !== undefined; node = nodes.pop()) {
    if (seen.has(node)) continue
    seen.add(node)
    for (const leaf of node.leaves) look(leaf)
  }
  const byContent = new Map<string, (codePoint: number) => boolean>()
  for (const [index, set] of [...asked].entries()) {
    if ('ascii' in set) {
      byContent.set(set.others === null ? `${set.ascii}` : `${index}`, (codePoint) => reads(set, codePoint))
    } else byContent.set(`${index}`, (codePoint) => contains(set, codePoint))
  }
  return [...byContent.values()]
}
