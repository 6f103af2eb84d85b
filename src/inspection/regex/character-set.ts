/** Sets of code points, as classes of patterns have them. */
export interface CharacterSet {
  /** Pairs of first and last code point. */
  readonly ranges: readonly number[]
  /** What no list of ranges says: Unicode properties, complements. */
  readonly tests: readonly ((codePoint: number) => boolean)[]
}

export const range = (first: number, last: number): CharacterSet => ({ ranges: [first, last], tests: [] })

const asciiSets = new Map<string, CharacterSet>()

/** Each of the characters; for a single plain one always the same set, so that what is worked out of it is kept. */
export function exactly(characters: string): CharacterSet {
  const known = asciiSets.get(characters)
  if (known !== undefined) return known
  const ranges = [...characters].flatMap((character) => {
    const codePoint = character.codePointAt(0) ?? 0
    return [codePoint, codePoint]
  })
  const set = { ranges, tests: [] }
  if (characters.length === 1 && characters < '\x80') asciiSets.set(characters, set)
  return set
}

export const union = (one: CharacterSet, other: CharacterSet): CharacterSet => ({
  ranges: [...one.ranges, ...other.ranges],
  tests: [...one.tests, ...other.tests],
})

export function contains(set: CharacterSet, codePoint: number): boolean {
  const { ranges, tests } = set
  for (let index = 0; index < ranges.length; index += 2) {
    if (codePoint >= (ranges[index] ?? 0) && codePoint <= (ranges[index + 1] ?? 0)) return true
  }
  return tests.some((test) => test(codePoint))
}

export const everyOther = (set: CharacterSet): CharacterSet => ({
  ranges: [],
  tests: [(codePoint) => !contains(set, codePoint)],
})

const caselessSets = new WeakMap<CharacterSet, CharacterSet>()

/** The set with the other case of each of its letters; for one set always the same, by which equal ones are known. */
export function caseless(set: CharacterSet): CharacterSet {
  let other = caselessSets.get(set)
  if (other === undefined) {
    other = isAscii(set) ? caselessAscii(set) : caselessWide(set)
    caselessSets.set(set, other)
  }
  return other
}

const isAscii = ({ ranges, tests }: CharacterSet): boolean =>
  tests.length === 0 && ranges.every((codePoint) => codePoint < 0x80)

/** Listed, because asking each character of a text for its cases is slow, and most sets are plain. */
function caselessAscii(set: CharacterSet): CharacterSet {
  const ranges = [...set.ranges]
  for (let upper = 0x41; upper <= 0x5a; upper++) {
    const lower = upper + 0x20
    if (contains(set, lower)) ranges.push(upper, upper)
    if (contains(set, upper)) ranges.push(lower, lower)
  }
  // The letters of Turkish, whose other case is not one character or not the same both ways.
  if (contains(set, 0x49) || contains(set, 0x69)) ranges.push(0x130, 0x131)
  return { ranges, tests: [] }
}

/** The other case of each character of the basic plane that has one, and of which characters it is the other case. */
interface Cases {
  readonly of: ReadonlyMap<number, readonly number[]>
  readonly from: ReadonlyMap<number, readonly number[]>
}

let cases: Cases | null = null

/** Worked out with the first pattern that needs it, because asking each character of a text for its cases is slow. */
function knownCases(): Cases {
  if (cases !== null) return cases
  const of = new Map<number, number[]>()
  const from = new Map<number, number[]>()
  for (let codePoint = 0x80; codePoint < 0x10000; codePoint++) {
    const others = casesOf(codePoint)
    if (others.length > 0) of.set(codePoint, others)
    for (const other of others) {
      const known = from.get(other)
      if (known === undefined) from.set(other, [codePoint])
      else known.push(codePoint)
    }
  }
  cases = { of, from }
  return cases
}

function casesOf(codePoint: number): number[] {
  const character = String.fromCodePoint(codePoint)
  return [character.toLowerCase(), character.toUpperCase()]
    .filter((other) => other !== character && [...other].length === 1)
    .map((other) => other.codePointAt(0) ?? 0)
}

/** How many characters beyond ASCII a set may have for the other cases of each to be listed. */
const mostListed = 512

function caselessWide(set: CharacterSet): CharacterSet {
  const { of, from } = knownCases()
  const listed = set.tests.length === 0 ? wideMembers(set) : null
  if (listed !== null) {
    const ranges = [...caselessAscii(set).ranges]
    for (const member of listed) for (const other of from.get(member) ?? []) ranges.push(other, other)
    return { ranges, tests: [] }
  }
  return {
    ranges: [],
    tests: [
      (codePoint) => {
        if (contains(set, codePoint)) return true
        const known = codePoint < 0x80 || codePoint > 0xffff ? casesOf(codePoint) : of.get(codePoint)
        return known?.some((other) => contains(set, other)) ?? false
      },
    ],
  }
}

/** The characters of a set of ranges beyond ASCII, where they are few and have their other case in the basic plane. */
function wideMembers({ ranges }: CharacterSet): readonly number[] | null {
  const members: number[] = []
  for (let index = 0; index < ranges.length; index += 2) {
    const last = ranges[index + 1] ?? 0
    if (last > 0xffff) return null
    for (let member = Math.max(0x80, ranges[index] ?? 0); member <= last; member++) {
      members.push(member)
      if (members.length > mostListed) return null
    }
  }
  return members
}

export const digits: CharacterSet = range(0x30, 0x39)
export const words: CharacterSet = { ranges: [0x30, 0x39, 0x41, 0x5a, 0x5f, 0x5f, 0x61, 0x7a], tests: [] }
/** Those of `\s` (ECMA-262, WhiteSpace and LineTerminator). */
export const spaces: CharacterSet = {
  ranges: [
    0x09, 0x0d, 0x20, 0x20, 0xa0, 0xa0, 0x1680, 0x1680, 0x2000, 0x200a, 0x2028, 0x2029, 0x202f, 0x202f, 0x205f, 0x205f,
    0x3000, 0x3000, 0xfeff, 0xfeff,
  ],
  tests: [],
}
