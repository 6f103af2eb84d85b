/** How long a log takes to answer what people ask of it. */

import { eventsOf } from '../../../src/events/engine/log-of.ts'
import type { Event } from '../../../src/events/event.ts'
import type { FacetFilter, LogQuery } from '../../../src/events/log/log-query.ts'
import { readRecords } from '../../../src/events/log/read-records.ts'
import { decodeHeader } from '../../../src/events/log/segment-codec.ts'
import { readLogHead, readSegments } from '../../../src/events/log/segment-rows.ts'
import { LogCheck } from '../../../src/events/verify/log-check.ts'
import { readSigned } from '../../../src/events/verify/signed-record.ts'
import type { Database } from '../../../src/store/open.ts'
import { percentile, timesOf } from '../generator/timing.ts'
import { rareReason } from './scale-records.ts'

const page = 100
/** A question is put so often, or for so many seconds where it is slow. */
const tries = 40
const secondsOfQuestion = 15
/** An export and a verification that take longer are broken off, and say how far they came. */
const secondsOfReading = 90

const everything = (ceiling: number): LogQuery => ({
  order: 'newest',
  ...{ since: 0, until: Number.MAX_SAFE_INTEGER, ceiling, after: null, facets: [], ids: [] },
})

async function firstPage(ledger: Database, query: LogQuery): Promise<Event[]> {
  const events: Event[] = []
  for await (const { event } of eventsOf(ledger, query)) {
    events.push(event)
    if (events.length === page) break
  }
  return events
}

/** Values of a facet that the newest segments have. */
async function valuesOf(ledger: Database, facet: FacetFilter['facet']): Promise<string[]> {
  const values = new Set<string>()
  for (const { header } of await readSegments(ledger, 'order by first_position desc limit 10', [])) {
    for (const value of decodeHeader(header)?.facets.get(facet)?.keys() ?? []) values.add(value)
  }
  return [...values].toSorted()
}

/** p50 and p99 of a question in milliseconds, then the same of the processor, then how many events were found. */
export interface Answer {
  name: string
  values: readonly number[]
}

interface Question {
  name: string
  queryOf(round: number): LogQuery
}

/** Puts each question many times with other values. `busyMs` says how long processors were at work until now. */
export async function measureQuestions(
  ledger: Database,
  questions: readonly Question[],
  busyMs: () => number = ownBusyMs,
): Promise<Answer[]> {
  const answers: Answer[] = []
  for (const { name, queryOf } of questions) {
    let found = 0
    const busy: number[] = []
    const times: number[] = []
    const end = performance.now() + secondsOfQuestion * 1000
    for (let round = 0; round < tries && performance.now() < end; round += 1) {
      const before = busyMs()
      const [time = Number.NaN] = await timesOf(1, async () => {
        found += (await firstPage(ledger, queryOf(round))).length
      })
      times.push(time)
      busy.push(busyMs() - before)
    }
    const values = [
      percentile(times, 0.5),
      percentile(times, 0.99),
      percentile(busy, 0.5),
      percentile(busy, 0.99),
      found / times.length,
    ]
    answers.push({ name, values })
  }
  return answers
}

function ownBusyMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

/** What people ask, with values that the segments of a ledger have. */
export async function questionsOf(ledger: Database): Promise<Question[]> {
  const { next } = await readLogHead(ledger)
  const questions: Question[] = []
  const ask = (name: string, queryOf: (round: number) => Partial<LogQuery>): void => {
    questions.push({ name, queryOf: (round) => ({ ...everything(next), ...queryOf(round) }) })
  }
  const one = async (facet: FacetFilter['facet']) => {
    const values = await valuesOf(ledger, facet)
    return (round: number): FacetFilter => ({ facet, values: [values[(round * 7) % values.length] ?? ''] })
  }
  const only = (facet: FacetFilter['facet'], value: string) => () => ({ facets: [{ facet, values: [value] }] })
  ask('page', () => ({}))
  for (const facet of ['team', 'token', 'model', 'gateway', 'provider'] as const) {
    const filter = await one(facet)
    ask(`page by ${facet}`, (round) => ({ facets: [filter(round)] }))
  }
  ask('page by verdict block', only('verdict', 'block'))
  ask('page by type decision', only('type', 'decision'))
  ask('page by status 5xx', only('status', '5xx'))
  ask('page by rare reason', only('reason', rareReason))
  ask('page by unknown reason', only('reason', 'nothing.such'))
  const [token, model] = [await one('token'), await one('model')]
  ask('page by token and model', (round) => ({ facets: [token(round), model(round)] }))
  ask('page by token and verdict', (round) => ({
    facets: [token(round), { facet: 'verdict', values: ['block'] }],
  }))
  ask('page by model and rare reason', (round) => ({
    facets: [model(round), { facet: 'reason', values: [rareReason] }],
  }))
  ask('oldest first', () => ({ order: 'oldest' }))
  const requests = await someRequests(ledger, next)
  ask('story of a request', (round) => storyOf(requests[round % requests.length] ?? ''))
  ask('story of no request', () => storyOf(Bun.randomUUIDv7()))
  return questions
}

const storyOf = (id: string): Partial<LogQuery> => ({
  order: 'oldest',
  ids: [id],
  matches: ({ request_id }) => request_id === id,
})

/** Request ids from all over the log. */
async function someRequests(ledger: Database, next: number): Promise<string[]> {
  const found: string[] = []
  for (let share = 0; share < tries; share += 1) {
    const from = 1 + Math.floor((share / tries) * (next - 1))
    for await (const { text } of readRecords(ledger, { from, before: from + 1 })) {
      found.push(/"request_id":"([^"]+)"/.exec(text)?.[1] ?? '')
    }
  }
  return found
}

/** Reads events as an export does. */
export async function exportAll(ledger: Database, busyMs: () => number = ownBusyMs): Promise<Record<string, number>> {
  const { next } = await readLogHead(ledger)
  const [before, began] = [busyMs(), performance.now()]
  let [events, bytes, peak] = [0, 0, 0]
  for await (const { event, json } of eventsOf(ledger, { ...everything(next), order: 'oldest' })) {
    events += 1
    bytes += (json ?? JSON.stringify(event)).length
    if (events % 4096 !== 0) continue
    peak = Math.max(peak, process.memoryUsage.rss())
    if (performance.now() - began > secondsOfReading * 1000) break
  }
  const seconds = (performance.now() - began) / 1000
  return {
    events,
    'events a second': events / seconds,
    'events a processor second': (events / (busyMs() - before)) * 1000,
    'MB a second': bytes / 1e6 / seconds,
    'peak memory, MB': peak / 1e6,
  }
}

/** Reads records as `events verify` does, without the sums of charts. */
export async function verifyLog(
  { state, ledger }: { state: Database; ledger: Database },
  busyMs: () => number = ownBusyMs,
): Promise<Record<string, number>> {
  const [before, began] = [busyMs(), performance.now()]
  const sources = { state, ledger, pinned: [], witnesses: [], now: Date.now() }
  const log = new LogCheck(
    { ledger, signal: AbortSignal.timeout(secondsOfReading * 1000) },
    await readSigned(sources, null),
  )
  await log.begin(false)
  let peak = 0
  for await (const _segment of log.segments()) peak = Math.max(peak, process.memoryUsage.rss())
  const { done, of } = log.progress
  if (done === of) await log.finish()
  const findings = [log, ...log.checks.values()].flatMap((each) => each.findings.take(true))
  const [first] = findings
  if (first !== undefined) console.log('The first finding:', first)
  return {
    records: done,
    'of these in the log': of,
    'records a second': (done / (performance.now() - began)) * 1000,
    'records a processor second': (done / (busyMs() - before)) * 1000,
    'peak memory, MB': peak / 1e6,
    findings: findings.length,
  }
}
