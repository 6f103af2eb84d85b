/**
 * What a text must hold for a pattern to match somewhere in it: factors, one of each group of which stands in every
 * match (Cox, Regular Expression Matching with a Trigram Index, 2012). Worked out from the pattern, so that most
 * texts need not be read by it. Says "perhaps": what lacks the factors has no match, what has them need not have one.
 *
 * Factors are of keys, which leave of a character what patterns seldom ask: letters in lower case, white space as a
 * space.
 */

import { memoized } from '../folding/memoize.ts'
import { type CharacterSet, contains, spaces } from './character-set.ts'
import type { PatternNode } from './pattern-syntax.ts'

/** Null where nothing is needed that could be looked for. */
export type Need =
  | { readonly some: readonly string[] }
  | { readonly all: readonly Need[] }
  | { readonly any: readonly Need[] }
  | null

/** What a character is to factors; one that patterns read, which is after folding. */
export function keyOf(codePoint: number): number {
  if (codePoint >= 0x41 && codePoint <= 0x5a) return codePoint + 0x20
  if (codePoint >= 0x09 && codePoint <= 0x0d) return 0x20
  return codePoint < 0x80 ? codePoint : wideKeyOf(codePoint)
}

/** As many as a text in several scripts has. */
const keysKept = 8192

/** The lower case of the upper case, so that all cases of a letter have one key. The letters of Turkish are an `i`. */
const wideKeyOf = memoized((codePoint): number => {
  if (codePoint === 0x130 || codePoint === 0x131) return 0x69
  if (contains(spaces, codePoint)) return 0x20
  const character = String.fromCodePoint(codePoint)
  const [upper = character, ...more] = character.toUpperCase()
  const [lower = character, ...others] = (more.length === 0 ? upper : character).toLowerCase()
  return others.length === 0 ? (lower.codePointAt(0) ?? codePoint) : codePoint
}, keysKept)

/** How many alternatives are told apart within one factor, and for one character. */
const mostStrings = 32
const mostKeys = 8

/** All that a node can match, by keys, where that is little; otherwise null, and what is needed for it. */
interface Known {
  readonly exact: readonly string[] | null
  readonly need: Need
}

const unknown: Known = { exact: null, need: null }
const empty: Known = { exact: [''], need: null }

/** What a text needs so that the pattern may match. */
export function needOf(node: PatternNode): Need {
  const known = knownOf(node)
  return known.exact === null ? known.need : someOf(known.exact)
}

function knownOf(node: PatternNode): Known {
  switch (node.type) {
    case 'set':
      return knownOfSet(node.set)
    case 'assertion':
      return empty
    case 'sequence':
      return knownOfSequence(node.parts)
    case 'choice':
      return knownOfChoice(node.options.map(knownOf))
    case 'repeat':
      if (node.least === 1 && node.most === 1) return knownOf(node.node)
      if (node.least > 0) return { exact: null, need: needOf(node.node) }
      return node.most === 1 ? knownOfChoice([empty, knownOf(node.node)]) : unknown
  }
}

/** Sets that patterns name, such as white space, come again and again, and to ask them of each character is slow. */
const knownSets = new WeakMap<CharacterSet, Known>()

function knownOfSet(set: CharacterSet): Known {
  const before = knownSets.get(set)
  if (before !== undefined) return before
  // What a test says of a character beyond ASCII is not known.
  const keys = set.tests.length > 0 ? null : keysOf(set)
  const known = keys === null || keys.size > mostKeys ? unknown : { exact: [...keys], need: null }
  knownSets.set(set, known)
  return known
}

/** The keys of a set's characters, or more than `mostKeys`. */
function keysOf(set: CharacterSet): ReadonlySet<string> {
  const keys = new Set<string>()
  for (let code = 0; code < 0x80 && keys.size <= mostKeys; code++) {
    if (contains(set, code)) keys.add(String.fromCharCode(keyOf(code)))
  }
  for (let index = 0; index < set.ranges.length; index += 2) {
    const last = set.ranges[index + 1] ?? 0
    for (let code = Math.max(0x80, set.ranges[index] ?? 0); code <= last && keys.size <= mostKeys; code++) {
      keys.add(String.fromCodePoint(keyOf(code)))
    }
  }
  return keys
}

function knownOfChoice(options: readonly Known[]): Known {
  const exact = options.flatMap((option) => option.exact ?? [])
  if (options.every((option) => option.exact !== null) && exact.length <= mostStrings) return { exact, need: null }
  return { exact: null, need: anyOf(options.map((option) => option.need ?? someOf(option.exact))) }
}

function knownOfSequence(parts: readonly PatternNode[]): Known {
  const needs: Need[] = []
  let held: readonly string[] = ['']
  const flush = (next: readonly string[]) => {
    needs.push(someOf(held))
    held = next
  }
  for (const part of parts) {
    const { exact, need } = knownOf(part)
    if (exact !== null) {
      if (held.length * exact.length > mostStrings) flush(exact)
      else held = held.flatMap((begun) => exact.map((string) => begun + string))
      continue
    }
    // A repetition begins with what it repeats, right after what stands before it.
    const first = part.type === 'repeat' && part.least > 0 ? knownOf(part.node).exact : null
    if (first !== null && held.length * first.length <= mostStrings) {
      held = held.flatMap((begun) => first.map((string) => begun + string))
    }
    flush([''])
    needs.push(need)
  }
  if (needs.length === 0) return { exact: held, need: null }
  flush([''])
  const known = needs.filter((need) => need !== null)
  return { exact: null, need: known.length === 0 ? null : { all: known } }
}

const someOf = (strings: readonly string[] | null): Need =>
  strings === null || strings.includes('') ? null : { some: [...new Set(strings)] }

function anyOf(needs: readonly Need[]): Need {
  return needs.includes(null) ? null : { any: needs }
}
