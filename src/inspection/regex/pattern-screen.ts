/**
 * Tells by one native regular expression which whole texts no pattern of a detector can match: most texts, at a
 * twentieth of what reading them costs. Worked out from the patterns; it says "perhaps" where it is not sure.
 *
 * 1. In every match of a pattern stand, side by side, characters of some sets: windows (`sk-`, two digits). Of all the
 *    windows of a pattern those are asked for that ordinary text has most seldom.
 * 2. An alternation of windows takes a bounded number of steps for each character, since nothing in it repeats. Where
 *    that number would be large, all texts are read.
 * 3. A text is read as patterns read it, folded, with one key for all characters beyond ASCII.
 *
 * It does not find matches, and it is not for texts that come in pieces.
 */

import { maxLiveUnits } from '../detectors/detector.ts'
import { foldForPattern } from '../folding/fold.ts'
import { type CharacterSet, contains } from './character-set.ts'
import { longest } from './pattern-program.ts'
import type { PatternNode } from './pattern-syntax.ts'

/** One character of a window: the class that regular expressions know it by, and how often text has one of it. */
interface CharacterClass {
  readonly source: string
  readonly share: number
}

type Window = readonly CharacterClass[]

/** All that a node can match, where that is little; otherwise null, and windows of which each match has one. */
interface Known {
  readonly exact: readonly Window[] | null
  readonly seldom: readonly Window[] | null
}

const mostWindows = 200
const longestWindow = 12
/** How many copies that a repetition need not have are told apart. */
const mostOptional = 4
/** How many steps there may be for one character of a text, were it made for it. */
const mostSteps = 512
/** What stands for all characters beyond ASCII. */
const wide = '\x80'

const empty: Known = { exact: [[]], seldom: null }

/**
 * Says of a whole text whether any of the patterns may match in it, or may be begun for longer than can be held. Worked
 * out for the first text.
 */
export function patternScreen(patterns: readonly PatternNode[]): (text: string) => boolean {
  let screen: ((text: string) => boolean) | null = null
  return (text) => {
    screen ??= screenOf(patterns)
    return screen(text)
  }
}

function screenOf(patterns: readonly PatternNode[]): (text: string) => boolean {
  const each = patterns.map((pattern) => seldomOf(knownOf(pattern)))
  const windows = each.flatMap((some) => some ?? [])
  if (each.includes(null) || stepsOf(windows) > mostSteps) return () => true
  const expression = new RegExp(sourceOf(windows))
  // A start goes on for at most twice its longest match, for pairs, and for what is ignorable within.
  const ignorableUnits = maxLiveUnits - 2 * (1 + Math.max(...patterns.map(longest)))
  const isBounded = Number.isFinite(ignorableUnits)
  return (text) => {
    if (!folding.test(text)) return expression.test(text)
    const folded = foldedKeys(text)
    return (isBounded && folded.ignorableUnits > ignorableUnits) || expression.test(folded.keys)
  }
}

/** All but the characters that folding leaves as they are. */
const folding = /[^\t-\r\x20-\x7e]/

interface FoldedKeys {
  readonly keys: string
  readonly ignorableUnits: number
}

let foldedLast: { text: string; folded: FoldedKeys } = { text: '', folded: { keys: '', ignorableUnits: 0 } }

/** What patterns read of a text; of the text asked for last it is known, because several policies ask in turn. */
function foldedKeys(text: string): FoldedKeys {
  if (foldedLast.text !== text) foldedLast = { text, folded: foldKeys(text) }
  return foldedLast.folded
}

function foldKeys(text: string): FoldedKeys {
  let keys = ''
  let ignorableUnits = 0
  let plainFrom = 0
  for (let position = 0; position < text.length; position++) {
    const unit = text.charCodeAt(position)
    if (unit < 0x7f && unit >= 0x20) continue
    keys += text.slice(plainFrom, position)
    const codePoint = text.codePointAt(position) ?? unit
    const folded = foldForPattern(codePoint)
    const units = codePoint > 0xffff ? 2 : 1
    if (folded.length === 0) ignorableUnits += units
    for (const point of folded) keys += point < 0x80 ? String.fromCharCode(point) : wide
    position += units - 1
    plainFrom = position + 1
  }
  return { keys: keys + text.slice(plainFrom), ignorableUnits }
}

function knownOf(node: PatternNode): Known {
  switch (node.type) {
    case 'set':
      return { exact: [[classOf(node.set)]], seldom: null }
    case 'assertion':
      return empty
    case 'sequence':
      return knownOfSequence(node.parts.map(knownOf))
    case 'choice':
      return knownOfChoice(node.options.map(knownOf))
    case 'repeat':
      return knownOfRepeat(node)
  }
}

function knownOfRepeat({ node, least, most }: PatternNode & { type: 'repeat' }): Known {
  const once = knownOf(node)
  const times = (count: number) => knownOfSequence(Array.from({ length: count }, () => once))
  if (most <= longestWindow && most - least <= mostOptional) {
    return knownOfChoice(Array.from({ length: most - least + 1 }, (_, more) => times(least + more)))
  }
  return { exact: null, seldom: seldomOf(times(Math.min(least, longestWindow))) }
}

function knownOfChoice(options: readonly Known[]): Known {
  const exact = options.flatMap((option) => option.exact ?? [])
  if (exact.length <= mostWindows && options.every((option) => option.exact !== null)) return { exact, seldom: null }
  const each = options.map(seldomOf)
  return { exact: null, seldom: each.includes(null) ? null : each.flatMap((windows) => windows ?? []) }
}

function knownOfSequence(parts: readonly Known[]): Known {
  let seldom: readonly Window[] | null = null
  let held: readonly Window[] = [[]]
  let isWhole = true
  const flush = (next: readonly Window[]) => {
    seldom = rather(seldom, held)
    held = next
    isWhole = false
  }
  for (const part of parts) {
    if (part.exact === null) {
      flush([[]])
      seldom = rather(seldom, part.seldom)
    } else {
      const { exact } = part
      const joined = held.length * exact.length > mostWindows ? null : held.flatMap((begun) => behind(begun, exact))
      if (joined?.every(({ length }) => length <= longestWindow) === true) held = joined
      else {
        if (joined !== null)
          seldom = rather(
            seldom,
            joined.map((window) => window.slice(0, longestWindow)),
          )
        flush(exact)
      }
    }
  }
  if (isWhole) return { exact: held, seldom: null }
  return { exact: null, seldom: rather(seldom, held) }
}

const behind = (begun: Window, windows: readonly Window[]): Window[] => windows.map((window) => [...begun, ...window])

const seldomOf = ({ exact, seldom }: Known): readonly Window[] | null => (exact === null ? seldom : rather(null, exact))

/** Of two lists of windows the one that ordinary text has more seldom; an empty window is in every text. */
function rather(one: readonly Window[] | null, other: readonly Window[] | null): readonly Window[] | null {
  if (other === null || other.some(({ length }) => length === 0)) return one
  const short = other.map(seldomEnough)
  return one === null || shareOf(short) < shareOf(one) ? short : one
}

const shareOf = (windows: readonly Window[]): number => windows.reduce((sum, window) => sum + shareOfWindow(window), 0)
const shareOfWindow = (window: Window): number => window.reduce((product, { share }) => product * share, 1)

/** Its first characters, where these are seldom enough: to look for more of them would tell hardly more texts apart. */
function seldomEnough(window: Window): Window {
  const until = window.findIndex((_, index) => shareOfWindow(window.slice(0, index + 1)) < 1e-8)
  return until < 0 ? window : window.slice(0, until + 1)
}

/** The windows as an alternation of what they begin with, so that most characters of a text are looked at once. */
function sourceOf(windows: readonly Window[]): string {
  const sources = [...byFirst(windows)].map(([first, rests]) => first + sourceOf(rests))
  return sources.length < 2 ? (sources[0] ?? '') : `(?:${sources.join('|')})`
}

/** What follows each first character; none where a window ends, because what has one of the others has that one. */
function byFirst(windows: readonly Window[]): ReadonlyMap<string, readonly Window[]> {
  const groups = new Map<string, Window[]>()
  for (const [first, ...rest] of windows) {
    if (first === undefined) return new Map()
    const others = groups.get(first.source) ?? []
    others.push(rest)
    groups.set(first.source, others)
  }
  return groups
}

/** How many steps the alternation takes at most at one place of a text. */
function stepsOf(windows: readonly Window[]): number {
  const entered = new Uint32Array(0x81)
  const groups = byFirst(windows)
  for (const [source, rests] of groups) {
    const steps = stepsOf(rests)
    for (const code of codesOf(source)) entered[code] = (entered[code] ?? 0) + steps
  }
  return groups.size + Math.max(...entered)
}

const codesBySource = new Map<string, readonly number[]>()

/** The codes of a class; a program has few classes, and they come again and again. */
function codesOf(source: string): readonly number[] {
  let codes = codesBySource.get(source)
  if (codes === undefined) {
    const expression = new RegExp(source)
    codes = Array.from({ length: 0x81 }, (_, code) => code).filter((code) => expression.test(String.fromCharCode(code)))
    if (codesBySource.size >= classesKept) codesBySource.clear()
    codesBySource.set(source, codes)
  }
  return codes
}

const classesKept = 1024

/** Sets that patterns name, such as digits, come again and again. */
const classes = new WeakMap<CharacterSet, CharacterClass>()

function classOf(set: CharacterSet): CharacterClass {
  const known = classes.get(set)
  if (known !== undefined) return known
  let source = ''
  let share = 0
  for (let code = 0; code < 0x80; code++) {
    if (!contains(set, code)) continue
    const first = code
    while (code < 0x7f && contains(set, code + 1)) code++
    source += first === code ? written(code) : `${written(first)}-${written(code)}`
    for (let each = first; each <= code; each++) share += shareOfCharacter(each)
  }
  // What a test says of a character beyond ASCII is not known.
  if (set.tests.length > 0 || set.ranges.some((codePoint) => codePoint >= 0x80)) {
    source += wide
    share += 0.02
  }
  const made = { source: `[${source}]`, share }
  classes.set(set, made)
  return made
}

const written = (code: number): string => `\\x${code.toString(16).padStart(2, '0')}`

/** Roughly how much of ordinary text a character is; only the order of what comes of it matters. */
function shareOfCharacter(code: number): number {
  if (code === 0x20) return 0.15
  if (code >= 0x30 && code <= 0x39) return 0.01
  return lettersByShare[code - 0x61] ?? 0.003
}

/** Those of `a` to `z`. */
const lettersByShare: readonly number[] = [
  65, 12, 20, 35, 100, 18, 16, 50, 55, 1, 6, 30, 20, 55, 60, 15, 1, 50, 50, 70, 20, 8, 20, 1, 16, 1,
].map((thousandths) => thousandths / 1000)
