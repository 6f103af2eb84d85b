/**
 * The Aho-Corasick automaton of a term list, over the keys that `inspection/folding/fold.ts` makes (Aho and Corasick,
 * CACM 18(6), 1975).
 *
 * States are numbers, the root is 0. Edges are in one open-addressing table of typed arrays and the edges of the root
 * in an array by symbol, so that a hundred thousand terms need some tens of megabytes and a second, and ten terms
 * nothing. Symbols are small numbers for the code points that occur in terms; all others share none, which leads to
 * the root.
 */
export interface Automaton {
  /** The symbol of a key's code point; 0 if no term has it. */
  symbolOf(codePoint: number): number
  /** The state after a symbol. */
  step(state: number, symbol: number): number
  /** The depth of a state: the length of the longest suffix that begins a term. */
  depth(state: number): number
  /** Whether a longer term continues from here. */
  grows(state: number): boolean
  /** The state of the next shorter suffix that begins a term. */
  shorter(state: number): number
  /** The first state, among this and its shorter ones, at which a term ends; 0 if there is none. */
  ending(state: number): number
  /** The terms that end exactly at a state, by their index. */
  termsAt(state: number): readonly number[]
  /** For each state its next one by symbol, `width` to a state; null if the table would be too large. */
  readonly table: Uint16Array | null
  readonly width: number
  /** What `ending` says, by state. */
  readonly endings: Int32Array
  readonly maxDepth: number
}

/**
 * The most entries of a table of all steps: a few megabytes are worth one look-up per step. And the most states, so
 * that a step is a small number: a table of half the size keeps twice as much in the cache.
 */
const tableLimit = 1 << 20
const statesLimit = 1 << 16

const noTerms: readonly number[] = []

/** Builds the automaton of keys: for each term its code points, none of them empty. */
export function buildAutomaton(keys: readonly (readonly number[])[]): Automaton {
  const trie = new Trie(keys.reduce((sum, key) => sum + key.length, 0) + 1)
  const symbols = new Map<number, number>()
  const asciiSymbols = new Int32Array(128)
  const symbolFor = (codePoint: number): number => {
    let symbol = symbols.get(codePoint)
    if (symbol === undefined) {
      symbol = symbols.size + 1
      symbols.set(codePoint, symbol)
      if (codePoint < 128) asciiSymbols[codePoint] = symbol
    }
    return symbol
  }
  const terms = new Map<number, number[]>()
  const states = new Int32Array(keys.length)
  // All terms are added one character at a time, so that the most visited states are close together.
  let growing = keys.map((_, index) => index)
  for (let depth = 0; growing.length > 0; depth++) {
    const longer: number[] = []
    for (const index of growing) {
      const key = keys[index] ?? []
      const state = trie.childOrNew(states[index] ?? 0, symbolFor(key[depth] ?? 0))
      states[index] = state
      if (key.length > depth + 1) {
        longer.push(index)
        continue
      }
      const ending = terms.get(state)
      if (ending === undefined) terms.set(state, [index])
      else ending.push(index)
    }
    growing = longer
  }
  const links = trie.link(symbols.size, terms)
  return {
    symbolOf: (codePoint) => (codePoint < 128 ? (asciiSymbols[codePoint] ?? 0) : (symbols.get(codePoint) ?? 0)),
    step: links.step,
    depth: (state) => trie.depths[state] ?? 0,
    grows: (state) => trie.hasChild[state] === 1,
    shorter: (state) => links.shorter[state] ?? 0,
    ending: (state) => links.ending[state] ?? 0,
    termsAt: (state) => terms.get(state) ?? noTerms,
    maxDepth: links.maxDepth,
    table: links.table,
    endings: links.ending,
    width: symbols.size + 1,
  }
}

interface Links {
  step(state: number, symbol: number): number
  shorter: Int32Array
  ending: Int32Array
  maxDepth: number
  table: Uint16Array | null
}

/** Shallow states are created first. */
class Trie {
  readonly depths: Int32Array
  readonly hasChild: Uint8Array
  readonly #parents: Int32Array
  readonly #symbols: Int32Array
  readonly #mask: number
  /** State + 1 of the child in each slot; its parent and symbol identify the edge. */
  readonly #slots: Int32Array
  #size = 1

  constructor(capacity: number) {
    this.depths = new Int32Array(capacity)
    this.hasChild = new Uint8Array(capacity)
    this.#parents = new Int32Array(capacity)
    this.#symbols = new Int32Array(capacity)
    let slots = 16
    while (slots < capacity * 2) slots *= 2
    this.#mask = slots - 1
    this.#slots = new Int32Array(slots)
  }

  /** The slot that holds an edge, or the empty slot for it. */
  #slotOf(state: number, symbol: number): number {
    let slot = (Math.imul(state, 0x9e3779b1) + Math.imul(symbol, 0x85ebca6b)) >>> 0
    slot = (slot ^ (slot >>> 15)) & this.#mask
    for (;;) {
      const child = (this.#slots[slot] ?? 0) - 1
      if (child < 0 || (this.#parents[child] === state && this.#symbols[child] === symbol)) return slot
      slot = (slot + 1) & this.#mask
    }
  }

  child(state: number, symbol: number): number {
    return (this.#slots[this.#slotOf(state, symbol)] ?? 0) - 1
  }

  childOrNew(state: number, symbol: number): number {
    const slot = this.#slotOf(state, symbol)
    const child = (this.#slots[slot] ?? 0) - 1
    if (child >= 0) return child
    const made = this.#size++
    this.#slots[slot] = made + 1
    this.#parents[made] = state
    this.#symbols[made] = symbol
    this.depths[made] = (this.depths[state] ?? 0) + 1
    this.hasChild[state] = 1
    return made
  }

  link(symbolCount: number, terms: ReadonlyMap<number, readonly number[]>): Links {
    const fromRoot = new Int32Array(symbolCount + 1)
    for (let symbol = 1; symbol <= symbolCount; symbol++) fromRoot[symbol] = Math.max(0, this.child(0, symbol))
    const shorter = new Int32Array(this.#size)
    const ending = new Int32Array(this.#size)
    const step = (from: number, symbol: number): number => {
      if (symbol === 0) return 0
      for (let state = from; state !== 0; state = shorter[state] ?? 0) {
        const child = this.child(state, symbol)
        if (child >= 0) return child
      }
      return fromRoot[symbol] ?? 0
    }
    for (let state = 1; state < this.#size; state++) {
      const parent = this.#parents[state] ?? 0
      if (parent !== 0) shorter[state] = step(shorter[parent] ?? 0, this.#symbols[state] ?? 0)
      ending[state] = terms.has(state) ? state : (ending[shorter[state] ?? 0] ?? 0)
    }
    const maxDepth = this.depths[this.#size - 1] ?? 0
    return { step, shorter, ending, maxDepth, table: this.#tableOf(symbolCount + 1, shorter) }
  }

  /** A state's steps are those of its next shorter suffix, except for its own edges. */
  #tableOf(width: number, shorter: Int32Array): Uint16Array | null {
    if (this.#size * width > tableLimit || this.#size > statesLimit) return null
    const table = new Uint16Array(this.#size * width)
    const firstChild = new Int32Array(this.#size)
    const sibling = new Int32Array(this.#size)
    for (let state = 1; state < this.#size; state++) {
      const parent = this.#parents[state] ?? 0
      sibling[state] = firstChild[parent] ?? 0
      firstChild[parent] = state
    }
    const addEdges = (state: number) => {
      for (let child = firstChild[state] ?? 0; child !== 0; child = sibling[child] ?? 0) {
        table[state * width + (this.#symbols[child] ?? 0)] = child
      }
    }
    addEdges(0)
    for (let state = 1; state < this.#size; state++) {
      const from = (shorter[state] ?? 0) * width
      table.copyWithin(state * width, from, from + width)
      addEdges(state)
    }
    return table
  }
}
