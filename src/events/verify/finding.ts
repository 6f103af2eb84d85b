/** The findings of `verify` and their texts. */
import { z } from 'zod'

const findings = {
  'event.altered': 'One of these records, or its place in the chain, is not what was written',
  'event.digest_altered': 'The digest that the log names behind this record is not what was written; the records are',
  'event.inserted': 'This record has no place in its chain',
  'event.not_valid': 'This is no valid record, and the log does not say so',
  'event.time_altered': 'The time that the log has of this record is not its own',
  'event.quarantine_altered': 'What the log says of this quarantined record is not true of it',
  'events.damaged': 'These records cannot be read: the bytes are not those that were written',
  'events.missing': 'These records are missing',
  'events.rewritten': 'These records are not those that were signed',
  'events.arrival_altered': 'The position, the time or the quarantine of one of these records is not what was signed',
  'chain.head_altered': 'What the ledger names as the end of the chain is not its last record',
  'chain.unknown': 'The ledger does not know the chain of these records',
  'segment.damaged': 'This part of the index of a segment cannot be read: the bytes are not those that were written',
  'segment.index_altered': 'The index of a segment does not say what its records say',
  'segment.missing': 'No segment holds these positions of the log',
  'segment.unknown': 'A row belongs to no segment, or is not of those of its segment',
  'log.head_altered': 'The head of the event log (the table event_log) was altered',
  'rollup.differs': 'A sum that charts show is not that of the events',
  'floor.altered': 'The record of what retention removed is not what was signed',
  'checkpoint.altered': 'A checkpoint differs from what was signed',
  'checkpoint.missing': 'A checkpoint that was signed, or must have been, is not there',
  'checkpoint.begun_anew': 'The checkpoints were begun anew here: the series that others belong to was broken off',
  'checkpoint.seen_going_back': 'A gateway recorded here that the newest checkpoint was older than one it had seen',
  'chain.parted':
    'A gateway recorded here that its own events and those of the ledger differ: its data directory was copied and both ran (remove gateway/worker in one), its host crashed, or these were altered',
  'checkpoint.went_back': 'The newest checkpoint is older than one that was seen before',
  'archive.missing': 'No part of the archive holds these positions of the log',
  'archive.unproved': 'A part of the archive has no proof, or a proof has no part',
  'archive.lines': 'A part of the archive has more or fewer lines than its proof says',
  'key.unknown': 'This was signed with a key that is not among those to be trusted',
  'key.no_checkpoint': 'No checkpoint is signed with a key that is to be trusted',
} as const
export type FindingCode = keyof typeof findings

export const findingSchema = z.object({
  kind: z.literal('finding'),
  what: z.enum(Object.keys(findings) as [FindingCode, ...FindingCode[]]),
  message: z.string(),
  chain: z.string().nullable(),
  from: z
    .number()
    .nullable()
    .describe('The number of the first record concerned; its position where the finding is of a segment'),
  to: z.number().nullable().describe('The number, or the position, of the last one'),
  event_id: z.string().nullable().describe('The id of the first one, as far as it is there'),
  column: z.string().nullable().describe('What of it differs: a part of the index, a table, a column or a sum'),
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

/** Joins findings of the same kind in consecutive records: a chain with a million altered ones is one finding. */
export class Findings {
  readonly #open = new Map<string, Finding>()
  #done: Finding[] = []

  add(found: Finding): void {
    const key = `${found.what} ${found.chain} ${found.column}`
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
