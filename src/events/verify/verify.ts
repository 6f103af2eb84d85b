/**
 * Reports whether any event was altered, removed or inserted since it was written (events/README.md;
 * events/proof/README.md): it reads the log once, in the order of positions, and compares the index of each segment with
 * its records, every chain with its records, checkpoints, floors and witnesses, and if all is well the sums behind charts
 * with the events (sums-check.ts). It yields between two blocks of records. Its memory grows with the number of chains
 * and the sums of one day, and by a few numbers for each segment.
 *
 * Not covered are records after the newest checkpoint, unless a gateway still has them: it ships them again, and other
 * content under their numbers is refused as a fork. The report says for each chain up to where it is covered.
 */
import { z } from 'zod'
import { timestamp } from '../../lib/clock.ts'
import { yieldToEventLoop } from '../../lib/yield-to-event-loop.ts'
import { type Finding, type Findings, findingSchema } from './finding.ts'
import { LogCheck } from './log-check.ts'
import { readSigned, type SignedSources } from './signed-record.ts'
import { verifySums } from './sums-check.ts'

const progressSchema = z.object({
  kind: z.literal('progress'),
  done: z.number().describe('Records that were read so far'),
  of: z.number().describe('Records that were there when the verification began'),
})

const verifiedChainSchema = z.object({
  kind: z.literal('chain'),
  chain: z.string(),
  records: z.number().describe('Records that were read: an exchange, with its attempts and decisions, is one'),
  from: z.number().describe('The number of the record before the first that was read'),
  to: z.number().describe('The number of the last record'),
  covered_to: z.number().describe('Up to this number the newest checkpoint vouches for what is there'),
})

const verifiedSchema = z.object({
  kind: z.literal('summary'),
  chains: z.number(),
  records: z.number(),
  events: z.number().describe('Events that these records are shown as'),
  findings: z.number(),
  not_covered: z.number().describe('Records younger than the newest checkpoint'),
  checkpoint: z.object({ number: z.number(), at: z.iso.datetime(), key_id: z.string() }).nullable(),
  keys: z.array(z.string()).describe('Ids of the keys that signatures were checked with'),
  sums_growing: z
    .number()
    .nullable()
    .describe('Hours and days whose sums were not compared, because too much came in; null where none were'),
})

/**
 * One line of the report, in this order: findings of signatures, findings of the log with the progress at most once a
 * second, a line for each chain, findings of sums, the summary.
 */
export const verifyLineSchema = z.discriminatedUnion('kind', [
  findingSchema,
  progressSchema,
  verifiedChainSchema,
  verifiedSchema,
])
export type VerifyLine = z.infer<typeof verifyLineSchema>

interface VerifyOptions extends SignedSources {
  /** How long events are kept, in milliseconds. */
  retention: number
  /** Milliseconds since the epoch; null for all there is. Reading begins at the checkpoint before it. */
  since: number | null
  /** Milliseconds since any instant. */
  monotonic(): number
  signal: AbortSignal
}

/** Of one chain, or of all segments; more are counted, not named. */
const maxFindings = 1000
const progressMs = 1000

export async function* verifyEvents(options: VerifyOptions): AsyncGenerator<VerifyLine> {
  const signed = await readSigned(options, options.since)
  yield* signed.findings
  const reported = new ReportedFindings(signed.findings.length)
  const log = new LogCheck(options, signed)
  await log.begin(options.since !== null)
  let lastProgress = options.monotonic()
  for await (const _segment of log.segments()) {
    yield* reported.take(log.findings)
    for (const { findings } of log.checks.values()) yield* reported.take(findings)
    if (options.monotonic() - lastProgress < progressMs) continue
    lastProgress = options.monotonic()
    yield { kind: 'progress', ...log.progress }
  }
  if (options.signal.aborted) return
  await log.finish()
  yield* reported.take(log.findings, true)
  const sum = { chains: 0, records: 0, events: log.events, findings: 0, not_covered: 0 }
  const chains = [...log.checks].toSorted(([one], [other]) => (one < other ? -1 : 1))
  for (const [chain, check] of chains) {
    yield* reported.take(check.findings, true)
    const { first: from, seq: to, coveredTo, records } = check
    yield { kind: 'chain', chain, records, from, to, covered_to: coveredTo }
    sum.chains += 1
    sum.records += records
    sum.not_covered += Math.max(0, to - coveredTo)
    await yieldToEventLoop()
  }
  let growing: number | null = null
  if (reported.count === 0 && !options.signal.aborted) {
    const sums = verifySums(options)
    for (let next = await sums.next(); ; next = await sums.next()) {
      if (next.done) {
        growing = next.value
        break
      }
      yield next.value
      reported.count += 1
    }
  }
  const { newest } = signed
  yield {
    kind: 'summary',
    ...sum,
    findings: reported.count,
    checkpoint: newest === null ? null : { ...newest, at: timestamp(newest.at) },
    keys: signed.keys.ids,
    sums_growing: growing,
  }
}

/** Counts findings, and gives the first ones of each source. */
class ReportedFindings {
  count: number
  readonly #bySource = new Map<Findings, number>()

  constructor(count: number) {
    this.count = count
  }

  take(source: Findings, all = false): Finding[] {
    const found = source.take(all)
    if (found.length === 0) return found
    const before = this.#bySource.get(source) ?? 0
    this.#bySource.set(source, before + found.length)
    this.count += found.length
    return found.slice(0, Math.max(0, maxFindings - before))
  }
}
