/**
 * All that a program can be in at once, and one step of it for a character (Thompson, CACM 11(6), 1968). What precedes
 * and what follows is known to assertions; which text it is, where its pieces end and what a match is worth is not: a
 * walk only tells which patterns end, with the starts that it was given. So the same steps serve a text, and the
 * table of steps that `lazy-dfa.ts` learns, whose starts are ranks.
 */
import { holds, type Leaf, type Node, type Program, reads } from './pattern-program.ts'
import type { StartTable } from './pattern-starts.ts'

export type Reading = Leaf & { type: 'read' }
export type Asserting = Leaf & { type: 'assert' }

/** A pattern that ends, with the start of what it has read. */
export interface Ending {
  readonly pattern: number
  readonly start: number
  /** Whether the match ends before the character that was read last, which only decided it. */
  readonly before: boolean
}

export class NfaSimulation {
  /** Instructions that wait to read, with the start of what each has read. */
  threads: Reading[] = []
  starts: number[] = []
  /** Assertions that wait to see what follows. */
  waiting: Asserting[] = []
  waitingStarts: number[] = []
  /** The last character; null at the text's beginning. */
  before: number | null = null
  /** What ended in the last step, in order. */
  endings: Ending[] = []
  /** How often threads moved on in the last step: while assertions were resolved, and then. */
  resolving = 0
  moves = 0
  readonly #program: Program
  readonly #startTable: StartTable
  #nextThreads: Reading[] = []
  #nextStarts: number[] = []
  /** Where an instruction stands among the next threads, where the round is this one. */
  readonly #places: Int32Array
  readonly #rounds: Int32Array
  #round = 0
  /** For each next thread, the one before it that waits at the same instruction for another start. */
  readonly #earlier: number[] = []
  #endsBefore = false
  readonly #asked = new Set<number>()

  constructor(program: Program, startTable: StartTable) {
    this.#program = program
    this.#startTable = startTable
    this.#places = new Int32Array(program.size)
    this.#rounds = new Int32Array(program.size)
  }

  /** Puts it where another one stood. The arrays are its own from now on. */
  stand(at: Pick<NfaSimulation, 'threads' | 'starts' | 'waiting' | 'waitingStarts' | 'before'>): void {
    this.threads = at.threads
    this.starts = at.starts
    this.waiting = at.waiting
    this.waitingStarts = at.waitingStarts
    this.before = at.before
    this.#round++
    for (const [index, { id }] of at.threads.entries()) {
      this.#earlier[index] = this.#rounds[id] === this.#round ? (this.#places[id] ?? 0) : -1
      this.#rounds[id] = this.#round
      this.#places[id] = index
    }
  }

  /** Reads a character; what begins with it has the start `at`. False where nothing was or is under way. */
  step(character: number, at: number): boolean {
    this.#beginStep()
    if (this.waiting.length > 0) this.#resolve(character)
    this.resolving = this.moves
    this.moves = 0
    this.#endsBefore = false
    if (this.#asked.size > 0) this.#asked.clear()
    const starting = this.#startTable.after(this.before, character)
    this.before = character
    const { threads, starts } = this
    if (threads.length === 0 && starting.length === 0) return false
    this.#round++
    this.#nextThreads.length = 0
    this.#nextStarts.length = 0
    this.moves += threads.length
    for (let index = 0; index < threads.length; index++) {
      const thread = threads[index]
      if (thread !== undefined && reads(thread.set, character)) this.#enter(thread.next, starts[index] ?? 0)
    }
    for (const node of starting) this.#enter(node, at)
    this.threads = this.#nextThreads
    this.starts = this.#nextStarts
    this.#nextThreads = threads
    this.#nextStarts = starts
    return true
  }

  /** The text has ended: assertions that waited learn that nothing follows. */
  end(): void {
    this.#beginStep()
    this.#resolve(null)
  }

  #beginStep(): void {
    this.endings = []
    this.moves = 0
    this.#endsBefore = true
    if (this.#asked.size > 0) this.#asked.clear()
  }

  /** Assertions that waited for this character, null for the text's end; those that hold go on from before it. */
  #resolve(after: number | null): void {
    const { waiting, waitingStarts: starts } = this
    this.waiting = []
    this.waitingStarts = []
    // What they lead to waits to read this character, together with those that already do.
    this.#nextThreads = this.threads
    this.#nextStarts = this.starts
    const visit = (leaf: Leaf, start: number): void => {
      if (leaf.type !== 'assert') this.#arrive(leaf, start)
      else if (this.#isNew(leaf, start) && holds(leaf.assertion, this.before, after)) {
        for (const next of leaf.next.leaves) visit(next, start)
      }
    }
    for (const [index, leaf] of waiting.entries()) visit(leaf, starts[index] ?? 0)
    this.threads = this.#nextThreads
    this.starts = this.#nextStarts
    this.#nextThreads = []
    this.#nextStarts = []
  }

  #enter({ leaves }: Node, start: number): void {
    for (let index = 0; index < leaves.length; index++) {
      const leaf = leaves[index]
      if (leaf === undefined) continue
      if (leaf.type === 'assert') this.#wait(leaf, start)
      else this.#arrive(leaf, start)
    }
  }

  #wait(leaf: Asserting, start: number): void {
    if (leaf.assertion.at !== 'after' && leaf.assertion.at !== 'start') {
      this.waiting.push(leaf)
      this.waitingStarts.push(start)
    } else if (this.#isNew(leaf, start) && holds(leaf.assertion, this.before, null)) this.#enter(leaf.next, start)
  }

  /** Whether an assertion comes up for this start for the first time here: a repetition of one leads back to it. */
  #isNew({ id }: Asserting, start: number): boolean {
    const key = start * this.#program.size + id
    if (this.#asked.has(key)) return false
    this.#asked.add(key)
    return true
  }

  #arrive(leaf: Leaf & { type: 'read' | 'end' }, start: number): void {
    this.moves++
    if (leaf.type === 'end') {
      this.endings.push({ pattern: leaf.pattern, start, before: this.#endsBefore })
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
        this.moves++
        if (this.#nextStarts[index] === start) return
      }
      this.#earlier[this.#nextThreads.length] = place
    } else this.#earlier[this.#nextThreads.length] = -1
    this.#rounds[id] = this.#round
    this.#places[id] = this.#nextThreads.length
    this.#nextThreads.push(leaf)
    this.#nextStarts.push(start)
  }
}
