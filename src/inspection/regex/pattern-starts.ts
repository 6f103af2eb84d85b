/** Where the patterns of a program stand after the character that they begin with: worked out once for each. */

import { memoized } from '../folding/memoize.ts'
import { contains, words } from './character-set.ts'
import { answersKept, holds, type Leaf, type Node, type Program, reads } from './pattern-program.ts'
import type { Assertion } from './pattern-syntax.ts'

/**
 * Where patterns that begin with a character stand after reading it. What precedes it matters only so far as assertions
 * at the beginnings of patterns look at it, so answers are kept by what those say of it.
 */
export class StartTable {
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
    const seen = new Set<Leaf>()
    const visit = (leaves: readonly Leaf[]) => {
      for (const leaf of leaves) {
        if (leaf.type === 'read') beyond ||= leaf.set.others !== null
        else if (leaf.type === 'assert' && !seen.has(leaf)) {
          seen.add(leaf)
          looks.push(leaf.assertion)
          visit(leaf.next.leaves)
        }
      }
    }
    visit(starts.leaves)
    this.#beyondAscii = beyond
    const asked = looks.filter(({ at }) => at === 'after')
    const ways = (before: number) => asked.map((look) => (holds(look, before, null) ? '1' : '0')).join('')
    this.#waysOf = memoized(ways, answersKept)
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
      known = memoized((asked) => this.#find(before, asked), answersKept)
      if (this.#others.size >= waysKept) this.#others.clear()
      this.#others.set(way, known)
    }
    return known(codePoint)
  }

  #find(before: number | null, codePoint: number): readonly Node[] {
    const nodes = new Set<Node>()
    const seen = new Set<Leaf>()
    const visit = (leaves: readonly Leaf[]) => {
      for (const leaf of leaves) {
        if (seen.has(leaf)) continue
        seen.add(leaf)
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
