/** The event log as a plain list beside the real one, for property tests: both do the same, then are compared. */
import fc from 'fast-check'
import type { Database } from '../../store/open.ts'
import type { Statement } from '../../store/statement.ts'
import type { Event } from '../event.ts'
import { appendStatements, type ChainHead } from '../log/append.ts'
import { ChainWalk, chainStart } from '../log/chain.ts'
import type { FoundEvent, LogQuery, Place } from '../log/log-query.ts'
import { mergeOnce } from '../log/merge-segments.ts'
import { comparePlaces } from '../log/read-log.ts'
import { expandRecord, type FacetName, facetNames, hasFacet, type LogRecord } from '../log/record.ts'
import type { NewRecord } from '../log/segment.ts'
import { decodeHeader } from '../log/segment-codec.ts'
import { readSegments, removeSegments } from '../log/segment-rows.ts'

/** Small blocks make many of few records. */
const sizes = { full: 3, fanIn: 3 }
const teams = ['red', 'blue', 'green']
const tokens = ['t1', 't2', 't3', 't4']
const models = ['gpt-5', 'claude-x', 'grün "quoted" \\ model']
const receivedAt = 2_000

export interface Shape {
  at: number
  team: number
  token: number
  model: number
  request: number
  blocked: boolean
  attempts: number
}
export const shape = fc.record({
  at: fc.integer({ min: 1_000, max: 1_060 }),
  team: fc.nat(2),
  token: fc.nat(3),
  model: fc.nat(2),
  request: fc.nat(30),
  blocked: fc.boolean(),
  attempts: fc.nat(2),
})

function recordOf({ at, team, token, model, request, blocked, attempts }: Shape): LogRecord {
  return {
    event_id: Bun.randomUUIDv7(),
    event_type: 'gateway.request.outcome',
    request_id: `req-${request}`,
    timestamp: new Date(at).toISOString(),
    verdict: blocked ? 'block' : 'allow',
    reason_code: blocked ? 'content_policy_violation' : 'ok',
    config_version: 1,
    event_attribution: {
      ...{ token_id: tokens[token] ?? '', team_id: teams[team] ?? '', user_id: null, gateway_id: 'g' },
      ...{ oauth_client_id: null, session_id: null, key_class: null },
    },
    details: { model: models[model], status: blocked ? 400 : 200 },
    ...(attempts > 0 && {
      attempts: Array.from({ length: attempts }, (_, index) => ({
        event_id: Bun.randomUUIDv7(),
        verdict: 'allow' as const,
        reason_code: 'ok',
        details: { model: `${models[model]}-${index}`, provider: 'openai' },
      })),
    }),
  }
}

/** A JSON text that says the same with characters written as escapes, as any worker may. */
const escaped = (wanted: boolean, text: string): string => (wanted ? text.replaceAll('t', '\\u0074') : text)

interface KeptRecord {
  position: number
  at: number
  text: string
}

/** A chain: its head, the texts of its records by number, and the digest after each. */
class ModelChain {
  readonly texts: string[] = []
  readonly digests: string[]
  /** Up to here retention has removed it. */
  removed = 0

  constructor(name: string) {
    this.digests = [chainStart(name)]
  }

  get head(): ChainHead {
    return { seq: this.texts.length, digest: this.digests.at(-1) ?? '' }
  }
}

/** A database whose next transaction fails before one of its statements, or after all of them. */
export const failing = (ledger: Database, before: number): Database => ({
  ...ledger,
  async write(statements) {
    const at = before % (statements.length + 1)
    await ledger.write([
      ...statements.slice(0, at),
      { sql: 'insert into guards (holds) select 0 as crashed', args: [] },
      ...statements.slice(at),
    ])
  },
})

export class LogModel {
  events: FoundEvent[] = []
  records: KeptRecord[] = []
  readonly chains = new Map<string, ModelChain>()
  readonly ledger: Database
  #position = 1

  constructor(ledger: Database) {
    this.ledger = ledger
  }

  /** Empties the log. */
  async begin(): Promise<void> {
    const tables = ['event_segments', 'event_blocks', 'segment_facets', 'segment_chains', 'chains']
    await this.ledger.write([
      ...tables.map((table): Statement => ({ sql: `delete from ${table}`, args: [] })),
      { sql: 'update event_log set next_position = 1, merges = 0', args: [] },
    ])
  }

  get next(): number {
    return this.#position
  }

  /** Appends in one transaction, which fails before one of its statements where `crash` is a number. */
  async append(name: string, shapes: readonly Shape[], crash: number | null = null): Promise<void> {
    const chain = this.chains.get(name) ?? new ModelChain(name)
    this.chains.set(name, chain)
    const { head } = chain
    const walk = new ChainWalk(head.digest)
    const digests: string[] = []
    const records = shapes.map((each, index): NewRecord => {
      const record = recordOf(each)
      const text = escaped(each.request % 5 === 0, JSON.stringify(record))
      walk.step(head.seq + 1 + index, text)
      digests.push(walk.digest)
      return { bytes: Buffer.from(text), at: each.at, record }
    })
    const batch = { chain: name, head, records, digest: walk.digest, receivedAt }
    const statements = appendStatements(batch, sizes.full)
    if (crash !== null) {
      // The crash is the error; what it left is compared afterwards.
      await failing(this.ledger, crash)
        .write(statements)
        .catch(() => undefined)
      return
    }
    await this.ledger.write(statements)
    chain.digests.push(...digests)
    for (const { bytes, at, record } of records) {
      const text = String(bytes)
      chain.texts.push(text)
      this.records.push({ position: this.#position, at, text })
      for (const [index, event] of (record === null ? [] : expandRecord(record)).entries()) {
        this.events.push({ at, position: this.#position, index, event })
      }
      this.#position += 1
    }
  }

  /** Of two writers that append to a chain at its head at once, one does. */
  async appendTwice(name: string, shapes: readonly Shape[]): Promise<boolean> {
    const { head } = this.chains.get(name) ?? new ModelChain(name)
    await this.append(name, shapes)
    const record = recordOf({ at: 1_000, team: 0, token: 0, model: 0, request: 0, blocked: false, attempts: 0 })
    const records = [{ bytes: Buffer.from(JSON.stringify(record)), at: 1_000, record }]
    const late = appendStatements({ chain: name, head, records, digest: 'late', receivedAt }, sizes.full)
    return await this.ledger.write(late).then(
      () => false,
      () => true,
    )
  }

  async merge(crash: number | null = null): Promise<void> {
    if (crash === null) await mergeOnce(this.ledger, sizes)
    else await mergeOnce(failing(this.ledger, crash), sizes)
  }

  /** Removes the oldest segment, as retention does. */
  async removeOldest(): Promise<void> {
    const [oldest] = await readSegments(this.ledger, 'order by first_position limit 1', [])
    const header = oldest === undefined ? null : decodeHeader(oldest.header)
    if (oldest === undefined || header === null) return
    await this.ledger.write(removeSegments([{ first: oldest.first, facets: header.facets }]))
    const end = oldest.first + oldest.records
    this.events = this.events.filter(({ position }) => position >= end)
    this.records = this.records.filter(({ position }) => position >= end)
    for (const { chain: name, last } of header.chains) {
      const chain = this.chains.get(name)
      if (chain !== undefined) chain.removed = last
    }
  }

  find(query: LogQuery): FoundEvent[] {
    return this.events
      .filter(({ at, position }) => at >= query.since && at < query.until && position < query.ceiling)
      .filter(({ event }) => query.matches?.(event) ?? true)
      .toSorted((one, other) => comparePlaces(one, other, query.order))
      .filter((each) => query.after === null || comparePlaces(query.after, each, query.order) < 0)
  }
}

export interface Asked {
  order: 'newest' | 'oldest'
  since: number
  until: number
  facets: { facet: FacetName; values: string[] }[]
  request: number | null
}
const values: Partial<Record<FacetName, string[]>> = {
  token: tokens,
  team: teams,
  model: models,
  verdict: ['allow', 'block', 'deny'],
  type: ['gateway.provider.attempt', 'gateway.request.outcome'],
  status: ['2xx', '4xx'],
  provider: ['openai'],
}
const facet = fc.constantFrom(...facetNames.filter((name) => values[name] !== undefined)).chain((name) =>
  fc.record({
    facet: fc.constant(name),
    values: fc.uniqueArray(fc.constantFrom(...(values[name] ?? [])), { minLength: 1, maxLength: 2 }),
  }),
)
export const asked: fc.Arbitrary<Asked> = fc.record({
  order: fc.constantFrom('newest' as const, 'oldest' as const),
  since: fc.integer({ min: 990, max: 1_060 }),
  until: fc.integer({ min: 1_000, max: 1_070 }),
  facets: fc.array(facet, { maxLength: 2 }),
  request: fc.option(fc.nat(30), { nil: null, freq: 4 }),
})

export function queryOf(
  { order, since, until, facets, request }: Asked,
  ceiling: number,
  after: Place | null,
): LogQuery {
  const matches = (event: Event) =>
    (request === null || event.request_id === `req-${request}`) &&
    facets.every(({ facet: name, values: wanted }) => hasFacet(event, name, wanted))
  return { order, since, until, ceiling, after, facets, ids: request === null ? [] : [`req-${request}`], matches }
}
