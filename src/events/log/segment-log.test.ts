import { afterAll, beforeAll, expect, test } from 'bun:test'
import fc from 'fast-check'
import { type TemporaryStore, temporaryStore } from '../../store/testing/store.ts'
import type { Event } from '../event.ts'
import { chainNext, chainStart } from './chain.ts'
import { mergeOnce } from './merge-segments.ts'
import { comparePlaces, type FoundEvent, type LogQuery, type Place, readLog } from './read-log.ts'
import { expandRecord, type FacetName, facetNames, hasFacet, type LogRecord } from './record.ts'
import { buildSegment, type NewRecord } from './segment.ts'
import { encodeSegment } from './segment-codec.ts'
import { appendSegment, readLogHead } from './segment-rows.ts'

let store: TemporaryStore
beforeAll(async () => {
  store = await temporaryStore()
})
afterAll(() => store.remove())

const tables = ['event_segments', 'event_blocks', 'segment_facets', 'segment_chains']
async function emptyLog(): Promise<void> {
  await store.ledger.write([
    ...tables.map((table) => ({ sql: `delete from ${table}`, args: [] })),
    { sql: 'update event_log set next_position = 1, merges = 0', args: [] },
  ])
}

/** Small blocks make many of few records. */
const fullBlock = 3
const teams = ['red', 'blue', 'green']
const tokens = ['t1', 't2', 't3', 't4']
const models = ['gpt-5', 'claude-x', 'grün "quoted" \\ model']

interface Shape {
  at: number
  team: number
  token: number
  model: number
  request: number
  blocked: boolean
  attempts: number
}
const shape = fc.record({
  at: fc.integer({ min: 1_000, max: 1_060 }),
  team: fc.nat(2),
  token: fc.nat(3),
  model: fc.nat(2),
  request: fc.nat(30),
  blocked: fc.boolean(),
  attempts: fc.nat(2),
})

function recordOf({ at, team, token, model, request, blocked, attempts }: Shape): LogRecord {
  const event_id = Bun.randomUUIDv7()
  return {
    event_id,
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

/** The log as a plain list, and as it is stored. */
class Model {
  readonly events: FoundEvent[] = []
  #position = 1
  readonly #heads = new Map<string, { seq: number; digest: string }>()

  async append(chain: string, shapes: readonly Shape[]): Promise<void> {
    let { seq, digest } = this.#heads.get(chain) ?? { seq: 0, digest: chainStart(chain) }
    const first = seq + 1
    const digestBefore = digest
    const records: NewRecord[] = shapes.map((each) => {
      const record = recordOf(each)
      const text = escaped(each.request % 5 === 0, JSON.stringify(record))
      seq += 1
      digest = chainNext(digest, seq, text)
      for (const [index, event] of expandRecord(record).entries()) {
        this.events.push({ at: each.at, position: this.#position, index, event })
      }
      this.#position += 1
      return { text, at: each.at, record }
    })
    this.#heads.set(chain, { seq, digest })
    const segment = buildSegment(records, { chain, first, digestBefore, digest, receivedAt: 2_000 }, fullBlock)
    await store.ledger.write(appendSegment(encodeSegment(segment)))
  }

  find(query: LogQuery): FoundEvent[] {
    return this.events
      .filter(({ at, position }) => at >= query.since && at < query.until && position < query.ceiling)
      .filter(({ event }) => query.matches?.(event) ?? true)
      .toSorted((one, other) => comparePlaces(one, other, query.order))
      .filter((each) => query.after === null || comparePlaces(query.after, each, query.order) < 0)
  }
}

interface Asked {
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
const asked: fc.Arbitrary<Asked> = fc.record({
  order: fc.constantFrom('newest' as const, 'oldest' as const),
  since: fc.integer({ min: 990, max: 1_060 }),
  until: fc.integer({ min: 1_000, max: 1_070 }),
  facets: fc.array(facet, { maxLength: 2 }),
  request: fc.option(fc.nat(30), { nil: null, freq: 4 }),
})

function queryOf({ order, since, until, facets, request }: Asked, ceiling: number, after: Place | null): LogQuery {
  const matches = (event: Event) =>
    (request === null || event.request_id === `req-${request}`) &&
    facets.every(({ facet: name, values: wanted }) => hasFacet(event, name, wanted))
  return { order, since, until, ceiling, after, facets, ids: request === null ? [] : [`req-${request}`], matches }
}

const idsOf = (found: readonly FoundEvent[]): string[] => found.map(({ event }) => event.event_id)

type Step =
  | { append: { chain: number; records: Shape[] } }
  | { merge: number }
  | { query: Asked; page: number; mergeBetween: boolean }
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    arbitrary: fc.record({
      append: fc.record({ chain: fc.nat(2), records: fc.array(shape, { minLength: 1, maxLength: 12 }) }),
    }),
    weight: 6,
  },
  {
    arbitrary: fc.record({
      append: fc.record({ chain: fc.nat(2), records: fc.array(shape, { minLength: 13, maxLength: 90 }) }),
    }),
    weight: 1,
  },
  { arbitrary: fc.record({ merge: fc.integer({ min: 1, max: 4 }) }), weight: 3 },
  {
    arbitrary: fc.record({ query: asked, page: fc.integer({ min: 1, max: 40 }), mergeBetween: fc.boolean() }),
    weight: 3,
  },
)

async function readPages(query: LogQuery, page: number, between: () => Promise<void>): Promise<FoundEvent[]> {
  const all: FoundEvent[] = []
  let after = query.after
  for (;;) {
    const found: FoundEvent[] = []
    for await (const each of readLog(store.ledger, { ...query, after })) {
      found.push(each)
      if (found.length === page) break
      if (found.length === 3) await between()
    }
    all.push(...found)
    after = found.at(-1) ?? null
    if (found.length < page) return all
  }
}

test('whatever is appended and merged, pages in either order give what a plain list gives', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 60 }), async (steps) => {
      await emptyLog()
      const model = new Model()
      for (const each of steps) {
        if ('append' in each) await model.append(`chain-${each.append.chain}`, each.append.records)
        else if ('merge' in each)
          for (let times = 0; times < each.merge; times += 1)
            await mergeOnce(store.ledger, { full: fullBlock, fanIn: 3 })
        else {
          const { next } = await readLogHead(store.ledger)
          const query = queryOf(each.query, next, null)
          const expected = model.find(query)
          const merge = async () => void (await mergeOnce(store.ledger, { full: fullBlock, fanIn: 3 }))
          const found = await readPages(query, each.page, each.mergeBetween ? merge : async () => undefined)
          expect(idsOf(found)).toEqual(idsOf(expected))
          expect(found.map(({ event }) => event)).toEqual(expected.map(({ event }) => event))
        }
      }
    }),
    { numRuns: Number(process.env.LOG_RUNS ?? 60) },
  )
}, 600_000)
