/** Inspects the texts of a request or of a whole answer, each by itself, with the engine that inspects streams. */
import type { TextSlot } from '../languages/reading/texts/text-slot.ts'
import { passWhole } from './channel.ts'
import type { Finding, InspectionRule, Stop } from './rule.ts'

interface SlotsOutcome {
  readonly findings: readonly Finding[]
  /** Why the whole must not go on; the first in order. */
  readonly stop: Stop | null
  /** Outermost members that were changed. */
  readonly changed: ReadonlySet<string>
}

/** Runs all rules over all slots and puts changed texts in their places. Where one stops, the rest is not looked at. */
export function inspectSlots(slots: readonly TextSlot[], rules: readonly InspectionRule[]): SlotsOutcome {
  const findings: Finding[] = []
  const changed = new Set<string>()
  for (const slot of slots) {
    if (slot.text === '') continue
    const { text, stop } = passWhole(
      rules,
      { kind: slot.kind, role: slot.role, place: slot.member, text: slot.text },
      findings,
    )
    if (stop !== null) return { findings, stop, changed }
    if (text === slot.text) continue
    slot.replace(text)
    changed.add(slot.member)
  }
  return { findings, stop: null, changed }
}
