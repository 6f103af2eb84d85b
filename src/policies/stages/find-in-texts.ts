/**
 * Finds a text policy's matches in the texts of a request or a whole answer. One thread serves all callers: long
 * texts are read a piece at a time, and other work runs between the pieces. The matches are the same either way
 * (`src/inspection/channel.ts`).
 */

import { Channel, followWhole, mayFind, mayMatch, type PassedWhole } from '../../inspection/channel.ts'
import { maxLiveUnits } from '../../inspection/detectors/detector.ts'
import type { Finding, InspectionRule, Stop } from '../../inspection/rule.ts'
import type { TextSlot } from '../../languages/reading/texts/text-slot.ts'
import type { Change, Decision, TextPolicy } from '../kinds/kind.ts'
import { findAcrossParts } from './across-parts.ts'
import { type YieldingTask, YieldTimer } from './yield-timer.ts'

/** How many findings of one policy an event lists. */
export const maxTargets = 20
/** UTF-16 units of all texts that are read without a pause: they cost some milliseconds at most. */
const longUnits = 16 * 1024
/** Units that are followed between two looks at the clock. */
const pieceUnits = 64
/**
 * Units that are screened between two looks at the clock; each window overlaps the next by more than the longest match.
 */
const windowUnits = 8 * 1024
const overlapUnits = 2 * maxLiveUnits

interface Found {
  /** Of what is read in turns, those that were not noted yet. */
  readonly findings: Finding[]
  /** What an event names. */
  readonly targets: Set<string>
  changes: Change[]
  stop: Stop | null
}

interface Reading {
  readonly compiled: TextPolicy
  readonly rule: InspectionRule
  readonly slots: readonly TextSlot[]
  readonly found: Found
}

/** Whether the policy may find something; true for texts that are long in total, which are not screened here. */
export function mayMatchIn(compiled: TextPolicy, slots: readonly TextSlot[]): boolean {
  if (isLong(slots)) return true
  for (const slot of slots) if (slot.text !== '' && mayFindIn(compiled, slot)) return true
  return holdsSeveralParts(slots)
}

/** Makes no object for a policy that reads all texts: a conversation has many. */
const mayFindIn = ({ matcher, reads }: TextPolicy, slot: TextSlot): boolean =>
  (reads === undefined || reads({ kind: slot.kind, role: slot.role, place: slot.member })) && mayMatch(matcher, slot)

/** Whether a message has several texts: a match may span them. */
function holdsSeveralParts(slots: readonly TextSlot[]): boolean {
  let last: object | undefined
  for (let index = 0; index < slots.length; index++) {
    const message = slots[index]?.message
    if (message === undefined) continue
    if (message === last) return true
    last = message
  }
  return false
}

/** The policy's result; null if it finds nothing. Rejects if the reading was cancelled. */
export function findInTexts(
  compiled: TextPolicy,
  rule: InspectionRule,
  slots: readonly TextSlot[],
  taker: YieldingTask,
): Decision | null | Promise<Decision | null> {
  const found: Found = { findings: [], targets: new Set(), changes: [], stop: null }
  const reading: Reading = { compiled, rule, slots, found }
  if (isLong(slots)) return readInTurns(reading, taker)
  for (const slot of slots) {
    if (slot.text === '' || !mayFindIn(compiled, slot)) continue
    if (isEnd(found, slot, readAtOnce(reading, slot))) break
  }
  if (found.stop === null) {
    const across = acrossParts(reading)
    let step = across.runs.next()
    while (step.done !== true) step = across.runs.next()
    across.take(step.value)
  }
  return decisionOf(reading)
}

/** Matches across the parts of a message, run by run; `take` receives each result. */
function acrossParts({ rule, slots, found }: Reading) {
  const changed = new Map<TextSlot, string>()
  for (const change of found.changes) if ('slot' in change) changed.set(change.slot, change.text)
  const runs = findAcrossParts({
    ...{ rule, slots, changed },
    found: ({ member: place }, label, entry) => {
      if (found.targets.size < maxTargets) found.targets.add(`${place}: ${label} (${entry})`)
    },
  })
  const take = (stop: Stop | null) => {
    found.stop = stop
    found.changes = [...changed].map(([slot, text]) => ({ slot, text }))
  }
  return { runs, take }
}

function isLong(slots: readonly TextSlot[]): boolean {
  let units = slots.length
  for (const { text } of slots) units += text.length
  return units > longUnits
}

function readAtOnce({ rule, found }: Reading, { kind, role, text, member: place }: TextSlot): PassedWhole {
  return followWhole([rule], { kind, role, place, text }, found.findings)
}

async function readInTurns(reading: Reading, taker: YieldingTask): Promise<Decision | null> {
  const { compiled, rule, slots, found } = reading
  const turns = new YieldTimer(taker)
  for (const slot of slots) {
    if (slot.text === '') continue
    if (turns.isDue) await turns.yield()
    if (!(await mayFindInTurns(compiled, slot, turns))) continue
    const { kind, role, text, member: place } = slot
    const channel = new Channel([rule], { kind, role, place }, found.findings)
    // Joined a piece at a time: a million small parts would otherwise be joined in one step while all callers wait.
    const out: string[] = []
    for (let at = 0; at < text.length && channel.stop === null; at += pieceUnits) {
      if (turns.isDue) await turns.yield()
      out.push(flat(channel.push(text.slice(at, at + pieceUnits))))
      note(found)
    }
    out.push(channel.end())
    if (isEnd(found, slot, { text: out.join(''), stop: channel.stop })) break
  }
  if (found.stop === null) {
    const across = acrossParts(reading)
    let step = across.runs.next()
    while (step.done !== true) {
      if (turns.isDue) await turns.yield()
      step = across.runs.next()
    }
    across.take(step.value)
  }
  return decisionOf(reading)
}

/**
 * Whether a text may have a match. A long one is screened in windows, because no match is longer than their overlap.
 */
function mayFindInTurns(compiled: TextPolicy, slot: TextSlot, turns: YieldTimer): boolean | Promise<boolean> {
  if (slot.text.length <= windowUnits) return mayFindIn(compiled, slot)
  if (compiled.matcher.bounded === undefined || slot.kind === 'tool_arguments') return true
  return mayFindInWindows(compiled, slot, turns)
}

async function mayFindInWindows(
  compiled: TextPolicy,
  { kind, role, text, member: place }: TextSlot,
  turns: YieldTimer,
): Promise<boolean> {
  for (let at = 0; at < text.length; at += windowUnits) {
    if (turns.isDue) await turns.yield()
    if (mayFind(compiled, { kind, role, place, text: text.slice(at, at + windowUnits + overlapUnits) })) return true
  }
  return false
}

/** Takes the result of one text; true if no other text needs to be read. */
function isEnd(found: Found, slot: TextSlot, { text, stop }: PassedWhole): boolean {
  found.stop = stop
  if (stop === null && text !== slot.text) found.changes.push({ slot, text })
  return stop !== null
}

/** The same text as one flat string: reading a character joins the parts of a rope, and frees them. */
const flat = (text: string): string => (text.charCodeAt(0) >= 0 ? text : '')

/** Takes in what was found so far: of a text that is full of findings none is kept. */
function note({ findings, targets }: Found): void {
  for (const { place, entry, label } of findings) {
    if (targets.size >= maxTargets) break
    targets.add(`${place}: ${label} (${entry})`)
  }
  findings.length = 0
}

function decisionOf({ compiled, found }: Reading): Decision | null {
  note(found)
  const { targets, changes, stop } = found
  if (targets.size === 0) return null
  const { action, reasonCode } = compiled
  return { verdict: stop?.verdict ?? action, reasonCode, targets: [...targets], changes }
}
