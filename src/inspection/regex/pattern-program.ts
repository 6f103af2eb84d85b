/**
 * Compiles patterns to one non-deterministic automaton (Thompson, CACM 11(6), 1968). Instructions that read nothing are
 * worked out beforehand: each reading instruction leads to its leaves, which are instructions that read, assertions that
 * wait for the next character, and ends of patterns.
 */
import { Failure } from '../../failure.ts'
import { maxMatchLength } from '../detectors/detector.ts'
import { memoized } from '../folding/memoize.ts'
import { type CharacterSet, contains, words } from './character-set.ts'
import type { Assertion, PatternNode } from './pattern-syntax.ts'

/** One pattern of a detector. */
export interface CompiledPattern {
  readonly label: string
  readonly entry: string
  readonly node: PatternNode
  /** Whether what matched is really one, by its folded text. */
  readonly check: ((text: string) => boolean) | null
  /** The last character that it matches is no part of what it finds. */
  readonly endsBefore: boolean
}

export type Leaf =
  | { readonly type: 'read'; readonly id: number; readonly pattern: number; readonly set: FastSet; readonly next: Node }
  | { readonly type: 'assert'; readonly id: number; readonly assertion: Assertion; readonly next: Node }
  | { readonly type: 'end'; readonly id: number; readonly pattern: number }

/** A place between instructions, with what it leads to without reading. */
export interface Node {
  leaves: readonly Leaf[]
}

/** A set whose ASCII part is one look-up, and that remembers what it was asked of other characters. */
export interface FastSet {
  readonly ascii: Uint8Array
  /** Null where no other character is in it. */
  readonly others: ((codePoint: number) => boolean) | null
}

/** How many answers about characters beyond ASCII are kept. */
export const answersKept = 4096

export interface Program {
  readonly starts: Node
  readonly size: number
  readonly patterns: readonly CompiledPattern[]
  /** Whether each match has a bounded length. */
  readonly bounded: boolean
}

/** No pattern of everyday use comes near it; it bounds the work for one character. */
const maxInstructions = 4096

/** How many ways lead on from all places together: what optional parts in a row multiply. It bounds time and memory. */
const maxWays = 262_144

type Instruction =
  | { type: 'read'; set: FastSet; next: number; pattern: number }
  | { type: 'assert'; assertion: Assertion; next: number }
  | { type: 'split'; to: readonly number[] }
  | { type: 'end'; pattern: number }

/** Throws `pattern_too_large` naming the pattern, and `invalid_parameter` for one that matches nothing at all. */
export function compileProgram(patterns: readonly CompiledPattern[], paramOf: (index: number) => string): Program {
  const writer = new ProgramWriter()
  const ends: number[] = []
  const starts = patterns.map(({ node }, index) => {
    if (shortest(node) === 0) {
      const message = 'A pattern must not match the empty text: write + instead of *'
      throw new Failure('invalid_parameter', { message, param: paramOf(index) })
    }
    const before = writer.size
    const start = writer.write(node, writer.add({ type: 'end', pattern: index }), index, paramOf(index))
    if (writer.size - before > maxInstructions) throw tooLarge(paramOf(index))
    ends.push(writer.size)
    return start
  })
  return {
    starts: writer.nodes(starts, (at) => tooLarge(paramOf(ends.findIndex((end) => at < end)))),
    size: writer.size,
    patterns,
    bounded: patterns.every(({ node }) => longest(node) <= maxMatchLength),
  }
}

const tooLarge = (param: string): Failure =>
  new Failure('invalid_parameter', { message: 'The pattern repeats too much inside of repetitions', param })

/** How many code points a match has at least. */
function shortest(node: PatternNode): number {
  switch (node.type) {
    case 'set':
      return 1
    case 'sequence':
      return node.parts.reduce((sum, part) => sum + shortest(part), 0)
    case 'choice':
      return Math.min(...node.options.map(shortest))
    case 'repeat':
      return node.least * shortest(node.node)
    case 'assertion':
      return 0
  }
}

/** How many code points a match has at most; infinite where nothing bounds it. */
export function longest(node: PatternNode): number {
  switch (node.type) {
    case 'set':
      return 1
    case 'sequence':
      return node.parts.reduce((sum, part) => sum + longest(part), 0)
    case 'choice':
      return Math.max(...node.options.map(longest))
    case 'repeat': {
      const length = longest(node.node)
      return length === 0 || node.most === 0 ? 0 : length * node.most
    }
    case 'assertion':
      return 0
  }
}

class ProgramWriter {
  readonly #instructions: Instruction[] = []
  readonly #sets = new Map<CharacterSet, FastSet>()

  get size(): number {
    return this.#instructions.length
  }

  add(instruction: Instruction): number {
    this.#instructions.push(instruction)
    return this.#instructions.length - 1
  }

  /** Writes a node that goes on at `then`; gives where it begins. */
  write(node: PatternNode, then: number, pattern: number, param: string): number {
    if (this.size > maxInstructions * 16) throw tooLarge(param)
    switch (node.type) {
      case 'set':
        return this.add({ type: 'read', set: this.#fast(node.set), next: then, pattern })
      case 'assertion':
        return this.add({ type: 'assert', assertion: node.assertion, next: then })
      case 'sequence':
        return node.parts.reduceRight((next, part) => this.write(part, next, pattern, param), then)
      case 'choice':
        return this.add({ type: 'split', to: node.options.map((option) => this.write(option, then, pattern, param)) })
      case 'repeat':
        return this.#repeat(node, then, pattern, param)
    }
  }

  #repeat(node: PatternNode & { type: 'repeat' }, then: number, pattern: number, param: string): number {
    let next = then
    if (node.most === Number.POSITIVE_INFINITY) {
      const to: number[] = []
      const loop = this.add({ type: 'split', to })
      to.push(this.write(node.node, loop, pattern, param), then)
      next = loop
    } else {
      for (let count = node.least; count < node.most; count++) {
        next = this.add({ type: 'split', to: [this.write(node.node, next, pattern, param), then] })
      }
    }
    for (let count = 0; count < node.least; count++) next = this.write(node.node, next, pattern, param)
    return next
  }

  #fast(set: CharacterSet): FastSet {
    const known = this.#sets.get(set)
    if (known !== undefined) return known
    const ascii = Uint8Array.from({ length: 128 }, (_, code) => (contains(set, code) ? 1 : 0))
    const fast = { ascii, others: others(set) }
    this.#sets.set(set, fast)
    return fast
  }

  /** The place that leads to all of these instructions, with all that it leads to; `refuse` names the one too many. */
  nodes(starts: readonly number[], refuse: (instruction: number) => Failure): Node {
    const nodes: Node[] = this.#instructions.map(() => ({ leaves: [] }))
    const leaves = this.#instructions.map((instruction, id) => leafOf(instruction, id, nodes))
    const reached = (from: readonly number[]): Leaf[] => {
      const seen = new Set<number>()
      const found: Leaf[] = []
      const waiting = from.toReversed()
      for (let index = waiting.pop(); index !== undefined; index = waiting.pop()) {
        if (seen.has(index)) continue
        seen.add(index)
        const instruction = this.#instructions[index]
        const leaf = leaves[index]
        if (instruction?.type === 'split') waiting.push(...instruction.to.toReversed())
        else if (leaf !== undefined && leaf !== null) found.push(leaf)
      }
      return found
    }
    let ways = 0
    for (const [index, node] of nodes.entries()) {
      node.leaves = reached([index])
      ways += node.leaves.length
      if (ways > maxWays) throw refuse(index)
    }
    return { leaves: reached(starts) }
  }
}

const nowhere: Node = { leaves: [] }

function leafOf(instruction: Instruction, id: number, nodes: readonly Node[]): Leaf | null {
  switch (instruction.type) {
    case 'read':
      return { ...instruction, id, next: nodes[instruction.next] ?? nowhere }
    case 'assert':
      return { ...instruction, id, next: nodes[instruction.next] ?? nowhere }
    case 'end':
      return { ...instruction, id }
    case 'split':
      return null
  }
}

export const reads = (fast: FastSet, codePoint: number): boolean =>
  codePoint < 128 ? fast.ascii[codePoint] === 1 : fast.others?.(codePoint) === true

function others(set: CharacterSet): FastSet['others'] {
  const { ranges, tests } = set
  if (tests.length === 0)
    return ranges.some((codePoint) => codePoint >= 128) ? (codePoint) => contains(set, codePoint) : null
  return memoized((codePoint) => contains(set, codePoint), answersKept)
}

const isWord = (codePoint: number | null): boolean => codePoint !== null && contains(words, codePoint)

/** Whether an assertion holds between two characters; null stands for the text's beginning or end. */
export function holds(assertion: Assertion, before: number | null, after: number | null): boolean {
  switch (assertion.at) {
    case 'start':
      return before === null
    case 'end':
      return after === null
    case 'boundary':
      return (isWord(before) !== isWord(after)) !== assertion.negated
    case 'before':
      return (after !== null && contains(assertion.set, after)) !== assertion.negated
    case 'after':
      return (before !== null && contains(assertion.set, before)) !== assertion.negated
  }
}
