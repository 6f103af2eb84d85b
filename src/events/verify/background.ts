/**
 * Verification by itself: every `verify_interval_seconds` one of the control planes verifies what came since the last
 * time, and keeps what it found in one row of the ledger, for metrics and alerts. A verification that somebody else asks
 * for keeps its findings there too. Only one of the whole log takes findings away: what was altered once stays
 * altered, also where nobody looks again.
 *
 * SQL text: a conditional upsert in the time of the database.
 */
import { z } from 'zod'
import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log/log.ts'
import { Rounds } from '../../lib/rounds.ts'
import { type Database, databaseTime, type Reader } from '../../store/open.ts'
import type { Signed } from '../proof/checkpoint-key.ts'
import type { Finding } from './finding.ts'
import { type VerifyLine, verifyEvents } from './verify.ts'

/** Findings of the same kind in the same chain are one, so that a ruined log is no ruined report. */
const keptFindingSchema = z.object({
  what: z.string(),
  message: z.string(),
  chain: z.string().nullable(),
  /** The first number or position concerned, and the last one. */
  from: z.number().nullable(),
  to: z.number().nullable(),
  /** When it was found first, in milliseconds since the epoch. */
  since: z.number().int(),
})
export type KeptFinding = z.infer<typeof keptFindingSchema>

export interface VerifyReport {
  /** When a verification last ended, in milliseconds since the epoch; null before the first. */
  examinedAt: number | null
  /** The time of the checkpoint up to which verifications by itself have come; null before the first. */
  coveredUntil: number | null
  findings: KeptFinding[]
}

/** Findings that are kept; of more the first ones. */
const mostKept = 100

/** Whether this control plane is to verify now: no other has begun to within `everyMs`. */
export async function claimVerification(ledger: Database, everyMs: number): Promise<boolean> {
  const claimed = await ledger.writeAndRead([
    {
      sql: `insert into verify_report (id, claimed_at, findings) values (1, ${databaseTime}, '[]')
        on conflict (id) do update set claimed_at = excluded.claimed_at
        where claimed_at <= excluded.claimed_at - ? or claimed_at > excluded.claimed_at
        returning 1`,
      args: [everyMs],
    },
  ])
  return claimed.length === 1
}

export async function readVerifyReport(ledger: Reader): Promise<VerifyReport> {
  const [row] = await ledger.read<{ examined_at: number | null; covered_until: number | null; findings: string }>(
    'select examined_at, covered_until, findings from verify_report',
  )
  if (row === undefined) return { examinedAt: null, coveredUntil: null, findings: [] }
  const findings = z.array(keptFindingSchema).parse(JSON.parse(row.findings))
  return { examinedAt: row.examined_at, coveredUntil: row.covered_until, findings }
}

interface Kept {
  /** Whether the whole log was verified. */
  whole: boolean
  /** When it began, in milliseconds since the epoch. */
  now: number
}

/** Passes the lines of a verification on, and keeps what it found once it has come to its end. */
export async function* keeping(
  ledger: Database,
  lines: AsyncIterable<VerifyLine>,
  kept: Kept,
): AsyncGenerator<VerifyLine, void, undefined> {
  const found: Finding[] = []
  for await (const line of lines) {
    if (line.kind === 'finding' && found.length < 10 * mostKept) found.push(line)
    if (line.kind === 'summary') await keep(ledger, found, kept)
    yield line
  }
}

const tries = 5

/** Adds what was found to what is known. What another verification keeps at the same time is not lost. */
async function keep(ledger: Database, found: readonly Finding[], kept: Kept): Promise<void> {
  for (let attempt = 0; attempt < tries; attempt += 1) {
    const { findings: known } = await readVerifyReport(ledger)
    const findings = JSON.stringify(withFound(known, found, kept).slice(0, mostKept))
    const written = await ledger.writeAndRead([
      {
        sql: `insert into verify_report (id, claimed_at, examined_at, findings) values (1, 0, ?1, ?2)
          on conflict (id) do update set examined_at = excluded.examined_at, findings = excluded.findings
          where verify_report.findings = ?3 returning 1`,
        args: [kept.now, findings, JSON.stringify(known)],
      },
    ])
    if (written.length === 1) return
  }
  throw new Error('Other verifications kept their findings at the same time, again and again')
}

/** Of what was known, the verification of the whole log leaves only what was found after it began. */
function withFound(known: readonly KeptFinding[], found: readonly Finding[], { whole, now }: Kept): KeptFinding[] {
  const before = new Map(known.map((each) => [subjectOf(each), each]))
  const fresh = new Map([...before].filter(([, { since }]) => !whole || since > now))
  for (const { what, message, chain, from, to } of found) {
    const one = { what, message, chain, from, to, since: now }
    const subject = subjectOf(one)
    const same = fresh.get(subject)
    fresh.set(subject, {
      ...one,
      from: least(same?.from ?? null, from),
      to: most(same?.to ?? null, to),
      since: before.get(subject)?.since ?? now,
    })
  }
  return [...fresh.values()]
}

/** The same for as long as it is the same finding. */
export const subjectOf = ({ what, chain }: Pick<KeptFinding, 'what' | 'chain'>): string =>
  chain === null ? what : `${what} ${chain}`

const least = (one: number | null, other: number | null): number | null =>
  one === null || other === null ? (one ?? other) : Math.min(one, other)
const most = (one: number | null, other: number | null): number | null =>
  one === null || other === null ? (one ?? other) : Math.max(one, other)

interface BackgroundOptions {
  state: Database
  ledger: Database
  clock: Clock
  log: Log
  settings: { event_retention_days: number; verify_interval_seconds: number }
  /** The newest checkpoint that was seen here, stored outside the databases. */
  seen(): Signed | null
}

/** Verifies what came since the checkpoint that the last time ended with, if it is this control plane's turn. */
export async function verifyIfDue(options: BackgroundOptions, everyMs: number, signal: AbortSignal): Promise<void> {
  const { state, ledger, clock, log, settings } = options
  if (!(await claimVerification(ledger, everyMs))) return
  const now = clock.now()
  const { coveredUntil } = await readVerifyReport(ledger)
  const own = options.seen()
  const lines = verifyEvents({
    ...{ state, ledger, now, signal, pinned: [], witnesses: own === null ? [] : [own] },
    since: Math.min(coveredUntil ?? now - everyMs, now),
    monotonic: () => clock.monotonic(),
    retention: settings.event_retention_days * 86_400_000,
  })
  for await (const line of keeping(ledger, lines, { whole: false, now })) {
    if (line.kind === 'finding') {
      const { what, message, chain, from, to } = line
      log.error({ what, chain, from, to }, `The record does not verify: ${message}`)
    }
    if (line.kind !== 'summary' || line.checkpoint === null) continue
    const until = Date.parse(line.checkpoint.at)
    await ledger.write([{ sql: 'update verify_report set covered_until = ? where id = 1', args: [until] }])
  }
}

/** In each interval a control plane asks so many times whether it is its turn. */
const turns = 6

/** `start`, and `stop`, which ends a verification that runs. */
export function verifyRounds(options: BackgroundOptions) {
  const ending = new AbortController()
  const everyMs = options.settings.verify_interval_seconds * 1000
  const rounds = new Rounds(everyMs / turns, async () => {
    try {
      // A little less than the interval, so that the one that verified last does not miss a whole turn.
      await verifyIfDue(options, everyMs * (1 - 0.5 / turns), ending.signal)
    } catch (error) {
      options.log.error({ work: 'verify', error: String(error) }, 'Background work failed and will be tried again')
    }
  })
  return {
    start: () => rounds.start(),
    stop: () => {
      ending.abort()
      return rounds.stop()
    },
  }
}
