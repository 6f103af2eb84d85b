/** Charts of what was asked, from sums that the control plane keeps (`/v1/events/series`). */

import type { ComponentChildren } from 'preact'
import { useEffect, useMemo } from 'preact/hooks'
import { api, type Series, type SeriesBy, type SeriesPoint, type Summary } from '../../api/routes.ts'
import { Chart, type ChartSeries, chartLibrary } from '../../parts/chart.tsx'
import { type Loaded, Show, useLoaded } from '../../parts/loaded.tsx'
import { chooseInstants, timeRange } from '../../time-range.ts'

const liveMilliseconds = 15_000

/** The sums of the time range, by one dimension or all together. */
export function useSeries(by: SeriesBy | null, filters: Readonly<Record<string, string>> = {}): Loaded<Series> {
  const { since, until } = timeRange()
  useChartLibrary()
  const query = { since, until, by, ...filters }
  return useLoaded(JSON.stringify(query), (signal) => api('GET /v1/events/series', { query, signal }), {
    everyMs: until === null ? liveMilliseconds : 0,
  })
}

/** All that the overview shows of the time range, of one moment; nothing is read while it is to `wait`. */
export function useSummary(wait: boolean): Loaded<Summary> {
  const { since, until } = timeRange()
  useChartLibrary()
  const query = { since, until }
  return useLoaded(JSON.stringify(query), (signal) => api('GET /v1/events/summary', { query, signal }), {
    everyMs: until === null ? liveMilliseconds : 0,
    wait,
  })
}

/** It comes beside the sums that it is to draw; where it does not come, the chart asks for it again. */
function useChartLibrary(): void {
  useEffect(() => void chartLibrary().catch(() => undefined), [])
}

const stepSeconds = { minute: 60, hour: 3600, day: 86_400 } as const

/** Every bucket of a series, those in which nothing happened too. */
export function bucketsOf({ since, until, step }: Pick<Series, 'since' | 'until' | 'step'>): number[] {
  const length = stepSeconds[step]
  const first = Math.floor(Date.parse(since) / 1000 / length) * length
  const count = Math.max(2, Math.ceil((Date.parse(until) / 1000 - first) / length))
  return Array.from({ length: count }, (_, index) => first + index * length)
}

export function valuesAt(
  times: readonly number[],
  points: readonly SeriesPoint[],
  value: (point: SeriesPoint) => number | null,
  none: number | null,
): (number | null)[] {
  const byTime = new Map(points.map((point) => [Date.parse(point.at) / 1000, value(point)]))
  return times.map((time) => byTime.get(time) ?? none)
}

interface PanelProps {
  title: string
  of: Loaded<Series>
  /** What is drawn, from the answer; another function draws it anew. */
  draw(series: Series, times: readonly number[]): ChartSeries[]
  format(value: number): string
  stacked?: boolean
  empty: string
  children?: ComponentChildren
}

export const ChartPanel = ({ title, of, draw, format, stacked = false, empty, children }: PanelProps) => (
  <section class="card stack">
    <div class="row between">
      <h2>{title}</h2>
      {children}
    </div>
    <Show of={of} rows={5}>
      {(series) => <Drawn title={title} series={series} draw={draw} format={format} stacked={stacked} empty={empty} />}
    </Show>
  </section>
)

function Drawn({
  title,
  series,
  draw,
  format,
  stacked,
  empty,
}: Omit<PanelProps, 'of' | 'children'> & { series: Series }) {
  const times = useMemo(() => bucketsOf(series), [series])
  const lines = useMemo(() => draw(series, times), [draw, series, times])
  if (lines.length === 0) return <p class="quiet">{empty}</p>
  return <Chart label={title} times={times} series={lines} stacked={stacked ?? false} format={format} zoom={zoomTo} />
}

/** The least that is zoomed to: sums are kept by the minute. */
const leastSeconds = 60

/** Makes what was dragged over the time range of everything that is shown. */
export function zoomTo(from: number, to: number): void {
  const middle = (from + to) / 2
  const half = Math.max(to - from, leastSeconds) / 2
  const instant = (seconds: number) => new Date(Math.round(seconds) * 1000).toISOString()
  chooseInstants(instant(middle - half), instant(middle + half))
}
