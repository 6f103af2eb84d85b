/**
 * Looks for an RE2 pattern in a text piece by piece, so that others have their turn between the pieces: the library
 * compiles the pattern, and its program is followed here (Thompson, CACM 11(6), 1968). It says the same as `find()`.
 */
import type { RE2JS } from 're2js'

/** The instructions of the library's programs, by its numbers (re2js, Inst.js). */
const [alternative, alternativeMatch, capture, emptyWidth, match, nothing] = [1, 2, 3, 4, 6, 7]
const [rune, oneRune, anyRune, anyRuneNotNewline] = [8, 9, 10, 11]

interface Instruction {
  readonly op: number
  readonly out: number
  readonly arg: number
  readonly runes: ArrayLike<number>
  matchRune(codePoint: number): boolean
}

interface Program {
  readonly inst: readonly Instruction[]
  readonly start: number
}

const known: ReadonlySet<number> = new Set([
  ...[alternative, alternativeMatch, capture, emptyWidth, 5, match, nothing],
  ...[rune, oneRune, anyRune, anyRuneNotNewline],
])

/** A search for a pattern; null where its program has an instruction that is not followed here. */
export function patternSearch(pattern: RE2JS): PatternSearch | null {
  const program: Program = pattern.re2().prog
  return program.inst.every(({ op }) => known.has(op)) ? new PatternSearch(program) : null
}

const isWord = (point: number): boolean =>
  (point >= 0x30 && point <= 0x39) ||
  (point >= 0x41 && point <= 0x5a) ||
  (point >= 0x61 && point <= 0x7a) ||
  point === 0x5f

/** What holds between two characters, by the library's bits; -1 stands for the text's beginning or end. */
function between(before: number, after: number): number {
  let holds = isWord(before) === isWord(after) ? 32 : 16
  if (before < 0) holds |= 5
  else if (before === 0x0a) holds |= 1
  if (after < 0) holds |= 10
  else if (after === 0x0a) holds |= 2
  return holds
}

export class PatternSearch {
  /** Whether the pattern was found. */
  found = false
  readonly #program: Program
  /** Where the search may go on. */
  #next: number[] = []
  readonly #threads: number[] = []
  readonly #visited: Int32Array
  #round = 0
  #before = -1
  #high = ''

  constructor(program: Program) {
    this.#program = program
    this.#visited = new Int32Array(program.inst.length)
  }

  push(piece: string): void {
    const text = this.#high + piece
    this.#high = ''
    for (let at = 0; at < text.length && !this.found; at++) {
      const point = text.codePointAt(at) ?? 0
      if (point >= 0xd800 && point < 0xdc00 && at + 1 === text.length) {
        this.#high = text.slice(at)
        return
      }
      if (point > 0xffff) at++
      this.#read(point)
    }
  }

  end(): void {
    if (this.#high !== '') this.#read(this.#high.charCodeAt(0))
    if (!this.found) this.#follow(-1)
  }

  #read(point: number): void {
    this.#follow(point)
    const threads = this.#threads
    for (let index = 0; index < threads.length; index++) {
      const instruction = this.#program.inst[threads[index] ?? 0]
      if (instruction !== undefined && reads(instruction, point)) this.#next.push(instruction.out)
    }
    this.#before = point
  }

  /** Goes on, without reading, to all instructions that read the character that follows; a match may begin anywhere. */
  #follow(after: number): void {
    const holds = between(this.#before, after)
    const { inst, start } = this.#program
    const open = this.#next
    open.push(start)
    this.#threads.length = 0
    this.#round++
    for (let at = open.pop(); at !== undefined; at = open.pop()) {
      if (this.#visited[at] === this.#round) continue
      this.#visited[at] = this.#round
      const instruction = inst[at]
      if (instruction === undefined) continue
      const { op, out, arg } = instruction
      if (op === match) this.found = true
      else if (op === alternative || op === alternativeMatch) open.push(out, arg)
      else if (op === capture || op === nothing) open.push(out)
      else if (op === emptyWidth) {
        if ((arg & ~holds) === 0) open.push(out)
      } else this.#threads.push(at)
    }
  }
}

function reads(instruction: Instruction, point: number): boolean {
  switch (instruction.op) {
    case oneRune:
      return point === instruction.runes[0]
    case anyRune:
      return true
    case anyRuneNotNewline:
      return point !== 0x0a
    case rune:
      return instruction.matchRune(point)
    default:
      return false
  }
}
