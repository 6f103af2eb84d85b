/**
 * Proves an archive of records by the rules of `events verify` (events/proof/README.md): each chain is walked over the
 * texts of its records, and over the digests of those that were left out, and compared with the digests that the proofs
 * name and with the heads that checkpoints sign. It needs nothing but the archive; who knows more, such as the key to
 * trust or how far the archive must reach, says so.
 *
 * A part that was delivered twice is checked twice and counted once. Its memory is one part and a few numbers for each
 * chain.
 */

import { ChainWalk, chainStart } from '../../events/log/chain.ts'
import { type Checkpoint, parseCheckpoint } from '../../events/proof/checkpoint.ts'
import { KeyRing, type Signed } from '../../events/proof/checkpoint-key.ts'
import { type Finding, finding } from '../../events/verify/finding.ts'
import type { VerifyLine } from '../../events/verify/verify.ts'
import { timestamp } from '../../lib/clock.ts'
import { yieldToEventLoop } from '../../lib/yield-to-event-loop.ts'
import { linesOfProof, type Proof } from '../formats/proof.ts'
import type { Archive, Part } from './archive.ts'

interface ArchiveOptions {
  archive: Archive
  /** The ids of the keys to trust; none: those that the archive, or the caller, brings. */
  pinned: readonly string[]
  /** Checkpoints that were kept elsewhere. */
  witnesses: readonly Signed[]
  /** Public keys that are known without the archive; null: take its own. */
  keys: readonly { id: string; public_key: string }[] | null
  /** The position that follows the last one that the archive must have; null where nobody knows. */
  reaches: number | null
}

const recordsAtOnce = 256
/** Heads of a chain that are compared; of more, every second one is. */
const headsKept = 256

interface SignedHead {
  seq: number
  digest: string
}

/** What is signed of the chains in an archive. */
class SignedHeads {
  readonly #heads = new Map<string, SignedHead[]>()
  newest: { checkpoint: Checkpoint; keyId: string } | null = null

  /** What is wrong with it, or null. */
  add(signed: Signed, ring: KeyRing): Finding | null {
    const state = ring.check('checkpoint', signed)
    const checkpoint = state === 'good' ? parseCheckpoint(signed.body) : null
    if (checkpoint === null) return finding(state === 'unknown_key' ? 'key.unknown' : 'checkpoint.altered', {})
    if (this.newest === null || checkpoint.number > this.newest.checkpoint.number) {
      this.newest = { checkpoint, keyId: signed.key_id }
    }
    for (const [chain, { seq, digest }] of checkpoint.heads) {
      const heads = this.#heads.get(chain) ?? []
      if (heads.at(-1)?.seq !== seq) heads.push({ seq, digest })
      this.#heads.set(chain, heads.length > headsKept ? heads.filter((_, index) => index % 2 === 1) : heads)
    }
    return null
  }

  /** What is signed of these numbers of a chain, by number. */
  of(chain: string, from: number, to: number): Map<number, string> {
    const heads = (this.#heads.get(chain) ?? []).filter(({ seq }) => seq >= from && seq <= to)
    return new Map(heads.map(({ seq, digest }) => [seq, digest]))
  }
}

interface ChainState {
  from: number
  seq: number
  digest: string
  records: number
  coveredTo: number
}

const progressMilliseconds = 1000

/** Findings come as they are found, with the progress at most once a second, then a line for each chain, then the summary. */
export async function* verifyArchive(options: ArchiveOptions): AsyncGenerator<VerifyLine> {
  const known = new Map((options.keys ?? []).map((key) => [key.id, key]))
  let ring = new KeyRing([...known.values()], options.pinned)
  const signed = new SignedHeads()
  let findings = 0
  const found = function* (lines: Iterable<Finding>) {
    for (const line of lines) {
      findings += 1
      yield line
    }
  }
  const read = function* (checkpoint: Signed) {
    const wrong = signed.add(checkpoint, ring)
    yield* found(wrong === null ? [] : [wrong])
  }
  let total = 0
  let last: Signed | null = null
  // Each checkpoint is read and let go: an archive of years has very many.
  for await (const { checkpoint, keys = [], first, next } of options.archive.proofs()) {
    total += next - first
    if (options.keys === null && keys.some(({ id }) => !known.has(id))) {
      for (const key of keys) known.set(key.id, key)
      ring = new KeyRing([...known.values()], options.pinned)
    }
    // Neighbours often have the same one.
    if (checkpoint === undefined || Bun.deepEquals(checkpoint, last)) continue
    last = checkpoint
    yield* read(checkpoint)
    await yieldToEventLoop()
  }
  for (const checkpoint of options.witnesses) yield* read(checkpoint)
  const check = new ArchiveCheck(signed)
  let told = performance.now()
  for await (const part of options.archive.parts()) {
    yield* found(await check.add(part))
    if (performance.now() - told < progressMilliseconds) continue
    told = performance.now()
    yield { kind: 'progress', done: check.records, of: total }
  }
  yield* found(check.end(options.reaches))
  let records = 0
  let uncovered = 0
  for (const [chain, { from, seq, coveredTo, records: read }] of check.chains) {
    records += read
    uncovered += Math.max(0, seq - Math.max(coveredTo, from))
    yield { kind: 'chain', chain, records: read, from, to: seq, covered_to: coveredTo }
  }
  const { newest } = signed
  yield {
    kind: 'summary',
    chains: check.chains.size,
    records,
    events: check.lines,
    findings,
    not_covered: uncovered,
    checkpoint:
      newest === null
        ? null
        : { number: newest.checkpoint.number, at: timestamp(newest.checkpoint.at), key_id: newest.keyId },
    keys: ring.ids,
    sums_growing: null,
  }
}

class ArchiveCheck {
  readonly chains = new Map<string, ChainState>()
  /** Texts that were read. */
  lines = 0
  /** Records whose digests were walked. */
  records = 0
  readonly #signed: SignedHeads
  #next: number | null = null

  constructor(signed: SignedHeads) {
    this.#signed = signed
  }

  async add({ texts, proof }: Part): Promise<Finding[]> {
    if (proof === null) return [finding('archive.unproved', { from: this.#next })]
    const { first, next } = proof
    const findings: Finding[] = []
    if (this.#next !== null && first > this.#next) {
      findings.push(finding('archive.missing', { from: this.#next, to: first - 1 }))
    }
    const isNew = this.#next === null || first >= this.#next
    this.#next = Math.max(this.#next ?? 0, next)
    for (const [position, records] of proof.damaged) {
      findings.push(finding('events.damaged', { from: position, to: position + records - 1, column: 'position' }))
    }
    const covered = proof.runs.reduce((sum, [, , records]) => sum + records, 0)
    const damaged = proof.damaged.reduce((sum, [, records]) => sum + records, 0)
    if (covered + damaged !== next - first || texts.length !== linesOfProof(proof)) {
      return [...findings, finding('archive.lines', { from: first, to: next - 1 })]
    }
    if (isNew) this.lines += texts.length
    this.records += covered
    return [...findings, ...(await this.#walk(proof, texts, isNew))]
  }

  /** Walks the chains of a part. */
  async #walk(proof: Proof, texts: readonly string[], isNew: boolean): Promise<Finding[]> {
    const leftOut = new Map(proof.left_out)
    const damaged = new Map(proof.damaged)
    const ends = new Map(proof.chains.map(([chain, before, after]) => [chain, { before, after }]))
    const walks = new Map<string, WalkedChain>()
    let position = proof.first
    let line = 0
    for (const [chain, from, records] of proof.runs) {
      position += damaged.get(position) ?? 0
      let walk = walks.get(chain)
      if (walk === undefined) {
        walk = new WalkedChain(chain, from, ends.get(chain)?.before ?? '')
        walks.set(chain, walk)
      }
      const signed = this.#signed.of(chain, from, from + records - 1)
      for (let seq = from; seq < from + records; seq += 1) {
        const digest = leftOut.get(position)
        if (digest === undefined) {
          walk.step(seq, texts[line] ?? '', signed)
          line += 1
        } else walk.stepOver(seq, digest, signed)
        position += 1
        if (position % recordsAtOnce === 0) await yieldToEventLoop()
      }
    }
    return [...walks.values()].flatMap((walk) =>
      this.#close(walk, ends.get(walk.chain)?.after ?? '', { isNew, isDamaged: damaged.size > 0 }),
    )
  }

  /** What is found of one chain in a part, once it was walked. */
  #close(walk: WalkedChain, after: string, { isNew, isDamaged }: { isNew: boolean; isDamaged: boolean }): Finding[] {
    const { chain, from, seq } = walk
    const at = { chain, from, to: seq }
    const findings: Finding[] = []
    const known = this.chains.get(chain)
    if (walk.hasGap) findings.push(finding('events.missing', at))
    if (!isDamaged && (walk.digest !== after || !walk.isFollowing)) findings.push(finding('event.altered', at))
    else if (walk.differing !== null) findings.push(finding('events.rewritten', { chain, from, to: walk.differing }))
    if (!isNew) return findings
    if (known !== undefined && from > known.seq + 1) {
      findings.push(finding('events.missing', { chain, from: known.seq + 1, to: from - 1 }))
    } else if (known !== undefined && !isDamaged && known.digest !== '' && walk.before !== known.digest) {
      findings.push(finding('event.altered', { chain, from: known.from + 1, to: known.seq }))
    }
    this.chains.set(chain, {
      from: known?.from ?? from - 1,
      seq,
      // What follows is compared with what this part says of itself, so that one alteration is one finding.
      digest: isDamaged ? '' : after,
      records: (known?.records ?? 0) + walk.records,
      coveredTo: Math.max(known?.coveredTo ?? 0, walk.coveredTo),
    })
    return findings
  }

  /** What is missing at the end. */
  end(reaches: number | null): Finding[] {
    if (reaches === null || this.#next === null || this.#next >= reaches) return []
    return [finding('archive.missing', { from: this.#next, to: reaches - 1 })]
  }
}

/** A chain within one part. */
class WalkedChain {
  readonly chain: string
  readonly from: number
  readonly before: string
  readonly #walk: ChainWalk
  seq: number
  records = 0
  hasGap = false
  coveredTo = 0
  /** The number at which a checkpoint has signed another digest. */
  differing: number | null = null

  constructor(chain: string, from: number, before: string) {
    this.chain = chain
    this.from = from
    this.before = before
    this.#walk = new ChainWalk(/^[0-9a-f]{64}$/.test(before) ? before : '0'.repeat(64))
    this.seq = from - 1
  }

  /** Whether its start is one that a chain can have. */
  get isFollowing(): boolean {
    return this.from > 1 || this.before === chainStart(this.chain)
  }

  get digest(): string {
    return this.#walk.digest
  }

  step(seq: number, text: string, signed: ReadonlyMap<number, string>): void {
    this.#walk.step(seq, text)
    this.#reached(seq, signed)
  }

  stepOver(seq: number, digest: string, signed: ReadonlyMap<number, string>): void {
    this.#walk.stepOver(seq, digest)
    this.#reached(seq, signed)
  }

  #reached(seq: number, signed: ReadonlyMap<number, string>): void {
    if (seq !== this.seq + 1) this.hasGap = true
    this.seq = seq
    this.records += 1
    const expected = signed.get(seq)
    if (expected === undefined) return
    if (expected === this.#walk.digest) this.coveredTo = seq
    else this.differing ??= seq
  }
}
