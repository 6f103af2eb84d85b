/**
 * What requests used, added up by what an operator asks for: teams, models, tokens, people, tags and more, together.
 * The sums are exact: they are made from the events and not from the sums for charts, which keep some of these groups
 * only. Reading takes time in proportion to the events of the window, and other work goes on meanwhile.
 *
 * Money is added up in nano-dollars.
 */
import { Failure } from '../../failure.ts'
import { fromNano, toNano } from '../../lib/money.ts'
import type { Database } from '../../store/open.ts'
import { answeredVerdicts, type Event, latencyOf, reportedModel, reportedProvider, valueOfDimension } from '../event.ts'
import { readPages } from '../export/export.ts'
import { readLogHead } from '../log/segment-rows.ts'
import type { EventConditions } from '../query/filters.ts'
import { countedTypes, dimensionPrefix } from '../rollups/rollup.ts'

/** What a dimension says of an event; null where it says nothing. */
type Dimension = (event: Event) => string | null

const dimensions = {
  team: (event) => event.event_attribution.team_id,
  token: (event) => event.event_attribution.token_id,
  user: (event) => event.event_attribution.user_id,
  gateway: (event) => event.event_attribution.gateway_id,
  client: (event) => event.event_attribution.client ?? null,
  model: reportedModel,
  provider: reportedProvider,
  verdict: (event) => event.verdict,
  day: (event) => event.timestamp.slice(0, 10),
  tag: ({ metadata = {} }) =>
    Object.entries(metadata)
      .map((entry) => entry.join('='))
      .toSorted()
      .join(',') || null,
} as const satisfies Readonly<Record<string, Dimension>>

export const dimensionNames = Object.keys(dimensions)

/** The dimensions that a text names, such as `team,model`, `tag:project` or `dimension:customer`; null where one is unknown or comes twice. */
export function readDimensions(text: string): ReadonlyMap<string, Dimension> | null {
  const named = text.split(',').map((name) => [name, dimensionOf(name)] as const)
  const known = named.filter((each): each is readonly [string, Dimension] => each[1] !== null)
  const unique = new Map(known)
  return unique.size === named.length ? unique : null
}

const declaredPattern = new RegExp(`^${dimensionPrefix}(.{1,200})$`)

function dimensionOf(name: string): Dimension | null {
  const declared = declaredPattern.exec(name)?.[1]
  if (declared !== undefined) return (event) => valueOfDimension(event, declared)
  const tag = /^tag:([^,]{1,200})$/.exec(name)?.[1]
  if (tag !== undefined) return ({ metadata = {} }) => (Object.hasOwn(metadata, tag) ? (metadata[tag] ?? null) : null)
  return Object.entries<Dimension>(dimensions).find(([known]) => known === name)?.[1] ?? null
}

interface Sums {
  requests: number
  /** Requests that a policy, a limit or a permission stopped. */
  refused: number
  errors: number
  /** What all of them took together, in milliseconds. */
  latency_ms: number
  input_tokens: number
  output_tokens: number
  cached_input_tokens: number
  /** US dollars. */
  cost: number
  /** Requests that a model without a price answered: their cost is not in the sum. */
  unpriced: number
}

interface ReportRow extends Sums {
  /** By dimension: an id, or what the event says. */
  group: Record<string, string | null>
  /** Of teams, tokens, people and gateways, as far as they have one and the caller may know it. */
  names: Record<string, string | null>
}

interface Window {
  /** Milliseconds since the epoch, `until` exclusive. */
  since: number
  until: number
  conditions: EventConditions | 'nothing'
  signal: AbortSignal
}

/** More rows are an answer that nobody reads. */
const rowsAtMost = 10_000

/** The rows, the dearest first, and their sum. Throws `invalid_parameter` where there are more than `rowsAtMost`. */
export async function readReport(
  ledger: Database,
  by: ReadonlyMap<string, Dimension>,
  window: Window,
): Promise<{ rows: ReportRow[]; totals: Sums }> {
  const { next: ceiling } = await readLogHead(ledger)
  const counted = { facet: 'type' as const, values: countedTypes }
  const { conditions } = window
  const outcomes = conditions === 'nothing' ? conditions : { ...conditions, facets: [...conditions.facets, counted] }
  const rows = new Map<string, ReportRow>()
  const totals = noSums()
  for await (const { found } of readPages(ledger, { ...window, ceiling, conditions: outcomes })) {
    for (const { event } of found) {
      const group = Object.fromEntries([...by].map(([name, dimension]) => [name, dimension(event)]))
      const key = JSON.stringify(Object.values(group))
      const row = rows.get(key) ?? { group, names: {}, ...noSums() }
      rows.set(key, row)
      if (rows.size > rowsAtMost) throw tooMany()
      addTo(row, event)
      addTo(totals, event)
    }
  }
  const inDollars = <Counted extends Sums>(sums: Counted): Counted => ({ ...sums, cost: fromNano(sums.cost) })
  const sorted = [...rows.values()].toSorted((one, other) => other.cost - one.cost || other.requests - one.requests)
  return { rows: sorted.map(inDollars), totals: inDollars(totals) }
}

const tooMany = () =>
  new Failure('invalid_parameter', {
    param: 'by',
    message: `The report has more than ${rowsAtMost} rows: ask for a shorter time, fewer dimensions, or filter`,
  })

const noSums = (): Sums => ({
  ...{ requests: 0, refused: 0, errors: 0, latency_ms: 0 },
  ...{ input_tokens: 0, output_tokens: 0, cached_input_tokens: 0, cost: 0, unpriced: 0 },
})

/** `cost` in nano-dollars, as long as it is added to. */
function addTo(sums: Sums, event: Event): void {
  const { event_type: type, verdict, event_cost_attribution: used } = event
  // What a batch used comes after the request that made it, which was counted.
  if (type === 'gateway.request.outcome') {
    const latency = latencyOf(event)
    sums.requests += 1
    if (verdict === 'error') sums.errors += 1
    else if (!answeredVerdicts.includes(verdict)) sums.refused += 1
    if (typeof latency === 'number') sums.latency_ms += latency
  }
  if (used === undefined) return
  sums.input_tokens += used.input_tokens ?? 0
  sums.output_tokens += used.output_tokens ?? 0
  sums.cached_input_tokens += used.cached_input_tokens ?? 0
  if (used.cost === null) sums.unpriced += 1
  else sums.cost += toNano(used.cost)
}
