/**
 * What proves a parcel of records (sinks/README.md, "Archives that prove themselves"): which records of which chains it
 * holds, the digests of those that were left out, and the digests of the chains before and after it. The newest
 * checkpoint stands in it, with the public keys, so that an archive needs nothing else: beside each object, and among
 * lines once.
 */
import { z } from 'zod'
import type { ChainedRecord, ChainReader } from '../../events/engine/event-log.ts'
import { logOf } from '../../events/engine/log-of.ts'
import { ChainWalk, chainStart } from '../../events/log/chain.ts'
import { readStateCheckpoint, signedSchema } from '../../events/proof/checkpoint.ts'
import { yieldToEventLoop } from '../../lib/yield-to-event-loop.ts'
import type { Database } from '../../store/open.ts'
import { query } from '../../store/query.ts'
import { checkpointKeys } from '../../store/schema/ledger/events.ts'

const digest = z.string().regex(/^[0-9a-f]{64}$/)

const proofSchema = z.strictObject({
  /** Positions: of the first record, and after the last one. */
  first: z.number().int().min(1),
  next: z.number().int(),
  /** In the order of positions: the chain, its number, how many records. */
  runs: z.array(z.tuple([z.string(), z.number().int(), z.number().int()])),
  /** Records without a line: the position, the SHA-256 of the text. */
  left_out: z.array(z.tuple([z.number().int(), digest])),
  /** Records that the log itself cannot read: the position, how many. */
  damaged: z.array(z.tuple([z.number().int(), z.number().int()])),
  /** Of each chain: its digest before its first record here, and after its last one. */
  chains: z.array(z.tuple([z.string(), z.string(), z.string()])),
  checkpoint: signedSchema.optional(),
  keys: z.array(z.object({ id: z.string(), public_key: z.string() })).optional(),
})
export type Proof = z.infer<typeof proofSchema>

const member = 'gatehouse_proof'
const proofPrefix = `{"${member}":`

export const isProofLine = (line: string): boolean => line.startsWith(proofPrefix)

/** How many lines a proof is of. */
export const linesOfProof = ({ runs, left_out }: Pick<Proof, 'runs' | 'left_out'>): number =>
  runs.reduce((sum, [, , records]) => sum + records, 0) - left_out.length

/** Null for a line that is no proof. */
export function readProof(line: string): Proof | null {
  try {
    const parsed = z.object({ [member]: proofSchema }).safeParse(JSON.parse(line))
    return parsed.success ? (parsed.data[member] ?? null) : null
  } catch {
    // The caller names the line.
    return null
  }
}

/** The chains of a sink as far as they have been sent, so that no digest is looked up twice. */
export class Proofs {
  readonly #databases: { state: Database; ledger: Database }
  readonly #heads = new Map<string, { seq: number; digest: string }>()
  readonly #chains: ChainReader
  readonly #isBesideEach: boolean
  #shown = 0
  #sending = 0

  /** `isBesideEach`: the checkpoint stands in each proof, also where one that was sent has it. */
  constructor(databases: { state: Database; ledger: Database }, isBesideEach: boolean) {
    this.#databases = databases
    this.#isBesideEach = isBesideEach
    this.#chains = logOf(databases.ledger).chains()
  }

  /** The digest of a chain after number `seq`; empty where the log no longer has it. */
  async before(chain: string, seq: number): Promise<string> {
    if (seq === 0) return chainStart(chain)
    const known = this.#heads.get(chain)
    if (known?.seq === seq) return known.digest
    return (await this.#chains.digestAt(chain, seq)) ?? ''
  }

  /** What was sent of a chain. */
  reached(chain: string, head: { seq: number; digest: string }): void {
    this.#heads.set(chain, head)
  }

  /** The receiver has the last proof that was made, and with it its checkpoint. */
  sent(): void {
    this.#shown = this.#sending
  }

  /** The newest checkpoint with its keys, where it belongs into the next proof. */
  async checkpoint(): Promise<Pick<Proof, 'checkpoint' | 'keys'>> {
    const { state, ledger } = this.#databases
    const newest = await readStateCheckpoint(state)
    if (newest === null || (newest.number === this.#shown && !this.#isBesideEach)) return {}
    this.#sending = newest.number
    const { body, key_id, signature } = newest
    const rows = await query(ledger).select().from(checkpointKeys)
    const keys = rows.map(({ id, publicKey }) => ({ id, public_key: publicKey }))
    return { checkpoint: { body, key_id, signature }, keys }
  }
}

/** Records that are hashed between two turns of other work: about a millisecond. */
const recordsAtOnce = 256

/** One record of a parcel, as its proof needs it. */
interface Proved {
  position: number
  chain: string
  seq: number
  text: string
  leftOut: boolean
}

export class ProofOfParcel {
  readonly #proofs: Proofs
  readonly #first: number
  readonly #records: Proved[] = []
  readonly #damaged: Proof['damaged'] = []

  constructor(proofs: Proofs, first: number) {
    this.#proofs = proofs
    this.#first = first
  }

  add({ position, chain, seq, text, damaged }: ChainedRecord, isSent: boolean): void {
    if (damaged !== undefined) this.#damaged.push([position, damaged.records])
    else this.#records.push({ position, chain, seq, text, leftOut: !isSent })
  }

  /** The line of the proof; `refused`: positions whose lines the receiver did not take. */
  async text(next: number, refused: ReadonlySet<number> = new Set()): Promise<string> {
    const runs: Proof['runs'] = []
    const left_out: Proof['left_out'] = []
    const walks = new Map<string, { before: string; walk: ChainWalk; seq: number }>()
    let expected = 0
    let walkedRecords = 0
    for (const { position, chain, seq, text, leftOut } of this.#records) {
      const run = runs.at(-1)
      if (run !== undefined && run[0] === chain && run[1] + run[2] === seq && position === expected) run[2] += 1
      else runs.push([chain, seq, 1])
      expected = position + 1
      let walked = walks.get(chain)
      if (walked === undefined) {
        const before = await this.#proofs.before(chain, seq - 1)
        walked = { before, walk: new ChainWalk(before === '' ? '0'.repeat(64) : before), seq }
        walks.set(chain, walked)
      }
      walked.walk.step(seq, text)
      walked.seq = seq
      walkedRecords += 1
      if (walkedRecords % recordsAtOnce === 0) await yieldToEventLoop()
      if (leftOut || refused.has(position)) left_out.push([position, Bun.SHA256.hash(text, 'hex')])
    }
    const chains = [...walks].map(([chain, { before, walk, seq }]): Proof['chains'][number] => {
      const after = before === '' || this.#damaged.length > 0 ? '' : walk.digest
      if (after !== '') this.#proofs.reached(chain, { seq, digest: after })
      return [chain, before, after]
    })
    const proof: Proof = {
      ...{ first: this.#first, next, runs, left_out, damaged: this.#damaged, chains },
      ...(await this.#proofs.checkpoint()),
    }
    return JSON.stringify({ [member]: proof })
  }
}
