/** The findings of `verify` and their texts. */
import { z } from 'zod'

const findings = {
  'event.altered': 'The body or the digest is not what was written',
  'event.column_altered': 'A column does not say what the body says',
  'event.digest_altered': 'The digest is not what was written; the body is',
  'event.inserted': 'This row has no place in its chain',
  'event.out_of_order': 'Its position is not behind that of the event before it',
  'events.missing': 'These events are missing',
  'events.rewritten': 'These events are not those that were signed',
  'events.arrival_altered':
    'The position, the time of receipt or the putting aside of one of these is not what was signed',
  'chain.head_altered': 'What the ledger names as the end of the chain is not its last event',
  'chain.unknown': 'The ledger does not know the chain of these events',
  'rollup.differs': 'A sum that charts show is not that of the events',
  'floor.altered': 'The record of what retention removed is not what was signed',
  'checkpoint.altered': 'A checkpoint differs from what was signed',
  'checkpoint.missing': 'A checkpoint that was signed, or must have been, is not there',
  'checkpoint.begun_anew': 'The checkpoints were begun anew here: the series that others belong to was broken off',
  'checkpoint.seen_going_back': 'A gateway recorded here that the newest checkpoint was older than one it had seen',
  'chain.parted':
    'A gateway recorded here that its own events and those of the ledger differ: its data directory was copied and both ran (remove gateway/worker in one), its host crashed, or these were altered',
  'checkpoint.went_back': 'The newest checkpoint is older than one that was seen before',
  'key.unknown': 'This was signed with a key that is not among those to be trusted',
  'key.no_checkpoint': 'No checkpoint is signed with a key that is to be trusted',
} as const
export type FindingCode = keyof typeof findings

export const findingSchema = z.object({
  kind: z.literal('finding'),
  what: z.enum(Object.keys(findings) as [FindingCode, ...FindingCode[]]),
  message: z.string(),
  chain: z.string().nullable(),
  from: z.number().nullable().describe('The number of the first event concerned'),
  to: z.number().nullable().describe('The number of the last one'),
  event_id: z.string().nullable().describe('The id of the first one, as far as it is there'),
  column: z.string().nullable(),
})
export type Finding = z.infer<typeof findingSchema>

/** A finding; what is not said is null. */
export const finding = (
  what: FindingCode,
  concerned: Partial<Omit<Finding, 'kind' | 'what' | 'message'>>,
): Finding => ({
  kind: 'finding',
  what,
  message: findings[what],
  chain: null,
  from: null,
  to: null,
  event_id: null,
  column: null,
  ...concerned,
})

/** Joins findings of the same kind in consecutive events: a chain with a million altered ones is one finding. */
export class Findings {
  readonly #open = new Map<string, Finding>()
  #done: Finding[] = []

  add(found: Finding): void {
    const key = `${found.what} ${found.column}`
    const open = this.#open.get(key)
    if (open !== undefined && open.to !== null && found.from === open.to + 1) {
      open.to = found.to
      return
    }
    if (open !== undefined) this.#done.push(open)
    this.#open.set(key, { ...found })
  }

  /** Those that can no longer grow; with `all`, at the end, the others too. */
  take(all = false): Finding[] {
    const taken = this.#done
    this.#done = []
    if (!all) return taken
    taken.push(...this.#open.values())
    this.#open.clear()
    return taken.toSorted((one, other) => (one.from ?? 0) - (other.from ?? 0))
  }
}
