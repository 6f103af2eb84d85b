/** Tells which groups of patterns a text may match, by one reading of it, before any of them reads it. */

import { buildAutomaton } from '../detectors/terms/term-automaton.ts'
import { foldForPattern } from '../folding/fold.ts'
import { keyOf, type Need, needOf } from './pattern-needs.ts'
import type { PatternNode } from './pattern-syntax.ts'

/**
 * The indices of the groups of which a pattern may match; the others have no match in the text. It says nothing about
 * what is begun and held for too long (`PatternDetector`), so it is for texts that nothing has to be held of.
 */
export function patternPrefilter(groups: readonly (readonly PatternNode[])[]): (text: string) => readonly number[] {
  const needs = groups.map((patterns) => patterns.map((pattern) => telling(needOf(pattern))))
  const factorsOfGroups = needs.map((patterns) => new Set(patterns.flatMap(factorsOf)))
  const factors = [...new Set(factorsOfGroups.flatMap((group) => [...group]))]
  const factorIndex = new Map(factors.map((factor, index) => [factor, index]))
  const checks = needs.map((patterns) => patterns.map((need) => compileNeed(need, factorIndex)))
  const automaton = buildAutomaton(factors.map((factor) => [...factor].map((key) => key.codePointAt(0) ?? 0)))
  const symbols = Int32Array.from({ length: 0x80 }, (_, code) => automaton.symbolOf(keyOf(code)))
  const { table, width, endings } = automaton
  const all = groups.map((_, index) => index)
  /** The groups that ask for each factor, and those that ask for none. */
  const asking = factors.map((factor) => all.filter((index) => factorsOfGroups[index]?.has(factor)))
  const always = all.filter((index) => needs[index]?.includes(null))
  /** For each factor, and each group, the round in which it was last seen: a round is one text. */
  const seen = new Float64Array(factors.length)
  const asked = new Float64Array(groups.length)
  /** The same of each state at which a factor ends: what ends there is noted once, however often a text comes there. */
  const noted = new Float64Array(endings.length)
  let round = 0

  const mark = (ending: number): void => {
    for (let state = ending; state !== 0; state = automaton.ending(automaton.shorter(state))) {
      // The shorter ones were noted with it.
      if (noted[state] === round) return
      noted[state] = round
      for (const factor of automaton.termsAt(state)) {
        seen[factor] = round
        for (const index of asking[factor] ?? []) asked[index] = round
      }
    }
  }
  const read = (text: string): void => {
    let state = 0
    for (let position = 0; position < text.length; position++) {
      const unit = text.charCodeAt(position)
      if (unit >= 0x20 && unit < 0x7f) {
        const symbol = symbols[unit] ?? 0
        state = table === null ? automaton.step(state, symbol) : (table[state * width + symbol] ?? 0)
        const ending = endings[state] ?? 0
        if (ending !== 0 && noted[ending] !== round) mark(ending)
        continue
      }
      const codePoint = text.codePointAt(position) ?? unit
      if (codePoint > 0xffff) position++
      for (const character of foldForPattern(codePoint)) {
        state = automaton.step(state, automaton.symbolOf(keyOf(character)))
        mark(automaton.ending(state))
      }
    }
  }
  const mayMatch = (group: readonly Check[]): boolean => {
    for (const check of group) if (check(seen, round)) return true
    return false
  }
  return (text) => {
    round++
    for (const index of always) asked[index] = round
    read(text)
    const found: number[] = []
    for (const index of all) if (asked[index] === round && mayMatch(checks[index] ?? [])) found.push(index)
    return found
  }
}

/** What stands in nearly every text, somewhere. */
const commonplace = /^[a-z ]{0,2}$/

/**
 * What is asked of a text: of the factors that a pattern needs together only those that tell texts apart, where there
 * are such. To note the others at nearly every character costs more than they would ever spare.
 */
function telling(need: Need): Need {
  if (need === null || 'some' in need) return need
  if ('any' in need) return { any: need.any.map(telling) }
  const parts = need.all.map(telling)
  const kept = parts.filter(isTelling)
  return { all: kept.length > 0 ? kept : parts }
}

/** Whether there are texts without it, whichever way it is met. */
function isTelling(need: Need): boolean {
  if (need === null) return false
  if ('some' in need) return !need.some.some((factor) => commonplace.test(factor))
  return 'any' in need ? need.any.every(isTelling) : need.all.some(isTelling)
}

type Check = (seen: Float64Array, round: number) => boolean

const factorsOf = (need: Need): readonly string[] => {
  if (need === null) return []
  if ('some' in need) return need.some
  return ('all' in need ? need.all : need.any).flatMap(factorsOf)
}

function compileNeed(need: Need, factorIndex: ReadonlyMap<string, number>): Check {
  if (need === null) return () => true
  if ('some' in need) {
    const factors = need.some.map((factor) => factorIndex.get(factor) ?? 0)
    return (seen, round) => {
      for (const factor of factors) if (seen[factor] === round) return true
      return false
    }
  }
  if ('all' in need) {
    const checks = need.all.map((part) => compileNeed(part, factorIndex))
    return (seen, round) => {
      for (const check of checks) if (!check(seen, round)) return false
      return true
    }
  }
  const checks = need.any.map((part) => compileNeed(part, factorIndex))
  return (seen, round) => {
    for (const check of checks) if (check(seen, round)) return true
    return false
  }
}
