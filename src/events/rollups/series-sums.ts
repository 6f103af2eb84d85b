/** Rows of sums added up by key and instant, as a chart shows them. */
import { timestamp } from '../../lib/clock.ts'
import { fromNano } from '../../lib/money.ts'
import { shownText } from '../../store/damage/stored-text.ts'
import {
  type LatencySketch,
  mergeSketch,
  type Quantiles,
  quantilesOf,
  readSketch,
  subtractSketch,
} from './latency-sketch.ts'

/** `cost` in dollars. Quantiles are null without measurements. */
interface Measures {
  requests: number
  input_tokens: number
  output_tokens: number
  cost: number
  latency_ms: Quantiles | null
  first_token_ms: Quantiles | null
}

/** `rest` is set only for the sum of all keys that are not shown. A model may be called `other` too. */
interface Keyed {
  key: string | null
  rest: boolean
}

export interface KeyedPoints {
  series: (Keyed & { points: ({ at: string } & Measures)[] })[]
  totals: (Keyed & Measures)[]
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
  /** Quantiles of only a part of the sum would be wrong. */
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

interface Summed {
  shown: Keyed
  total: Sums
  points: Map<number, Sums>
}

/** Values that no key has. */
const restKey = 'rest'
const noKey = 'none'

/** Adds rows up by key, as hex, and instant. */
export class SeriesSums {
  readonly #keys = new Map<string, Summed>()

  addKey(key: string, shown: string | null): void {
    this.#keys.set(key, { shown: { key: shown, rest: false }, total: nothing(), points: new Map() })
  }

  /**
   * Call last: adds what is not shown, as rows without sketches. Their sketches are the `whole`, rows of all keys
   * together, minus the shown ones. If the request counts differ, as while sums are being added to, there are none.
   */
  addRest(rows: readonly Omit<SumsRow, 'key'>[], whole: readonly Omit<SumsRow, 'key'>[]): void {
    const left = new Map<number, Sums>()
    for (const row of whole) addRow(sumsAt(left, row.at), row)
    for (const { points } of this.#keys.values()) {
      for (const [at, point] of points) takeAway(sumsAt(left, at), point)
    }
    const rest: Summed = { shown: { key: 'other', rest: true }, total: nothing(), points: new Map() }
    this.#keys.set(restKey, rest)
    for (const row of rows) this.add(restKey, row)
    rest.total.sketched = true
    for (const [at, point] of rest.points) {
      const { requests, latency, firstToken } = sumsAt(left, at)
      point.sketched = requests === point.requests
      if (point.sketched) Object.assign(point, { latency, firstToken })
      else rest.total.sketched = false
      mergeSketch(rest.total.latency, point.latency)
      mergeSketch(rest.total.firstToken, point.firstToken)
    }
  }

  /** Adds what has no key. */
  addValueless(rows: readonly Omit<SumsRow, 'key'>[]): void {
    if (rows.length > 0) this.addKey(noKey, null)
    for (const row of rows) this.add(noKey, row)
  }

  add(key: string, row: Omit<SumsRow, 'key'>): void {
    const series = this.#keys.get(key)
    if (series === undefined) return
    addRow(sumsAt(series.points, row.at), row)
    addRow(series.total, row)
  }

  result(): KeyedPoints {
    const all = [...this.#keys.values()]
    return {
      series: all.map(({ shown, points }) => ({
        ...shown,
        points: [...points].map(([at, sums]) => ({ at: timestamp(at), ...measuresOf(sums) })),
      })),
      totals: all.map(({ shown, total }) => ({ ...shown, ...measuresOf(total) })),
    }
  }
}

/** The sums of an instant, initially empty. */
function sumsAt(sums: Map<number, Sums>, at: number): Sums {
  const found = sums.get(at) ?? nothing()
  sums.set(at, found)
  return found
}

function takeAway(sums: Sums, part: Sums): void {
  sums.requests -= part.requests
  subtractSketch(sums.latency, part.latency)
  subtractSketch(sums.firstToken, part.firstToken)
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
