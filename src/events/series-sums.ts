/** Rows of sums added up by key and instant, as a chart shows them. */
import { timestamp } from '../lib/clock.ts'
import { fromNano } from '../lib/money.ts'
import { shownText } from '../store/stored-text.ts'
import { type LatencySketch, mergeSketch, type Quantiles, quantilesOf, readSketch } from './latency-sketch.ts'

/** `cost` in dollars; quantiles are null where nothing was measured, and for what is summed up under `other`. */
export interface Measures {
  requests: number
  input_tokens: number
  output_tokens: number
  cost: number
  latency_ms: Quantiles | null
  first_token_ms: Quantiles | null
}

export interface KeyedPoints {
  series: { key: string | null; points: ({ at: string } & Measures)[] }[]
  totals: ({ key: string | null } & Measures)[]
}

/** A row of sums; sketches are bytes of JSON, and absent where the row is of several keys. */
export interface SumsRow {
  at: number
  key: string
  requests: number
  input_tokens: number
  output_tokens: number
  cost: number
  latency?: unknown
  first_token?: unknown
}

interface Sums {
  requests: number
  input_tokens: number
  output_tokens: number
  cost: number
  latency: LatencySketch
  firstToken: LatencySketch
  /** Quantiles of a part of what is summed up would be of something else. */
  sketched: boolean
}

const nothing = (): Sums => ({
  requests: 0,
  input_tokens: 0,
  output_tokens: 0,
  cost: 0,
  latency: {},
  firstToken: {},
  sketched: true,
})

/** Adds rows up by key and instant. */
export class SeriesSums {
  readonly #keys = new Map<string, { shown: string | null; total: Sums; points: Map<number, Sums> }>()

  addKey(key: string, shown: string | null): void {
    if (!this.#keys.has(key)) this.#keys.set(key, { shown, total: nothing(), points: new Map() })
  }

  add(key: string, row: Omit<SumsRow, 'key'>): void {
    const series = this.#keys.get(key)
    if (series === undefined) return
    let point = series.points.get(row.at)
    if (point === undefined) {
      point = nothing()
      series.points.set(row.at, point)
    }
    addRow(point, row)
    addRow(series.total, row)
  }

  result(): KeyedPoints {
    const all = [...this.#keys.values()]
    return {
      series: all.map(({ shown, points }) => ({
        key: shown,
        points: [...points].map(([at, sums]) => ({ at: timestamp(at), ...measuresOf(sums) })),
      })),
      totals: all.map(({ shown, total }) => ({ key: shown, ...measuresOf(total) })),
    }
  }
}

function addRow(sums: Sums, row: Omit<SumsRow, 'key'>): void {
  sums.requests += row.requests
  sums.input_tokens += row.input_tokens
  sums.output_tokens += row.output_tokens
  sums.cost += row.cost
  if (row.latency === undefined) sums.sketched = false
  mergeSketch(sums.latency, readSketch(shownText(row.latency)))
  mergeSketch(sums.firstToken, readSketch(shownText(row.first_token)))
}

const measuresOf = ({ latency, firstToken, sketched, cost, ...sums }: Sums): Measures => ({
  requests: sums.requests,
  input_tokens: sums.input_tokens,
  output_tokens: sums.output_tokens,
  cost: fromNano(cost),
  latency_ms: sketched ? quantilesOf(latency) : null,
  first_token_ms: sketched ? quantilesOf(firstToken) : null,
})
