/**
 * What a text policy finds in the texts of a request or a whole answer. One thread reads for all callers: texts that are
 * long together are read a piece at a time, and everybody else has a turn between. What is found is the same either way
 * (`../inspection/channel.ts`).
 */
import type { TextSlot } from '../dialects/dialect.ts'
import { Channel, passWhole } from '../inspection/channel.ts'
import type { Finding, InspectionRule, Stop } from '../inspection/rule.ts'
import { turn } from '../lib/turn.ts'
import type { Change, Decision, TextPolicy } from './kinds/kind.ts'

/** How many findings of one policy an event names. */
export const mostTargets = 20
/** UTF-16 units that are read without a turn. */
const longUnits = 128 * 1024
const pieceUnits = 4 * 1024
const turnMilliseconds = 5

interface Found {
  readonly findings: Finding[]
  readonly changes: Change[]
  stop: Stop | null
}

/** What the policy says; null where it finds nothing. `now` is milliseconds that only grow. */
export function findInTexts(
  compiled: TextPolicy,
  rule: InspectionRule,
  slots: readonly TextSlot[],
  now: () => number,
): Decision | null | Promise<Decision | null> {
  const found: Found = { findings: [], changes: [], stop: null }
  if (slots.reduce((sum, { text }) => sum + text.length, slots.length) > longUnits) {
    return readInTurns(rule, slots, found, now).then(() => decisionOf(compiled, found))
  }
  for (const slot of slots) {
    if (slot.text === '') continue
    const { kind, role, text, member: place } = slot
    const passed = passWhole([rule], { kind, role, place, text }, found.findings)
    if (isEnd(found, slot, passed)) break
  }
  return decisionOf(compiled, found)
}

async function readInTurns(
  rule: InspectionRule,
  slots: readonly TextSlot[],
  found: Found,
  now: () => number,
): Promise<void> {
  let since = now()
  const giveWay = async () => {
    if (now() - since < turnMilliseconds) return
    await turn()
    since = now()
  }
  for (const slot of slots) {
    if (slot.text === '') continue
    const { kind, role, text, member: place } = slot
    const channel = new Channel([rule], { kind, role, place }, found.findings)
    let out = ''
    for (let at = 0; at < text.length && channel.stop === null; at += pieceUnits) {
      await giveWay()
      out += channel.push(text.slice(at, at + pieceUnits))
    }
    out += channel.end()
    if (isEnd(found, slot, { text: out, stop: channel.stop })) return
  }
}

/** Takes in what came of one text; true where no other is to be read. */
function isEnd(found: Found, slot: TextSlot, { text, stop }: { text: string; stop: Stop | null }): boolean {
  found.stop = stop
  if (stop === null && text !== slot.text) found.changes.push({ slot, text })
  return stop !== null
}

function decisionOf({ action, reasonCode }: TextPolicy, { findings, changes, stop }: Found): Decision | null {
  if (findings.length === 0) return null
  const targets = [...new Set(findings.map(({ place, entry, label }) => `${place}: ${label} (${entry})`))]
  return { verdict: stop?.verdict ?? action, reasonCode, targets: targets.slice(0, mostTargets), changes }
}
