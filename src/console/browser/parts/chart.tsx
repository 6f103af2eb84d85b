/**
 * A chart over time: lines, or for what is counted by span of time bars that stand on each other. uPlot draws on a
 * canvas, which nobody can read who does not see it: a legend in words with the sums stands below, and each series
 * can be reached as a link from there.
 */
import { useEffect, useRef } from 'preact/hooks'
import type uPlot from 'uplot'
import { axisTimes } from '../formats.ts'
import { isDark } from '../preferences.ts'
import { readoutIn } from './chart-readout.ts'
import { userText } from './user-text.tsx'

export interface ChartSeries {
  name: string
  /** A CSS colour variable: `--allow`. */
  colour: string
  values: readonly (number | null)[]
  /** What the legend says beside the name. */
  sum?: string
  to?: string
}

let library: Promise<typeof uPlot> | null = null

/** The library that draws, in a file of its own: no screen waits for it before its words and numbers can be used. */
export function chartLibrary(): Promise<typeof uPlot> {
  library ??= import('uplot').then(
    ({ default: found }) => found,
    (error: unknown) => {
      library = null
      throw error
    },
  )
  return library
}

interface ChartProps {
  label: string
  /** Seconds since the epoch, ascending. */
  times: readonly number[]
  series: readonly ChartSeries[]
  stacked?: boolean
  format(value: number): string
  height?: number
  /** Takes the span of time that somebody has dragged over, in seconds since the epoch. */
  zoom?: ((from: number, to: number) => void) | undefined
}

export const seriesColours = [
  '--accent',
  '--rewrite',
  '--escalate',
  '--redact',
  '--allow',
  '--deny',
  '--rate_limit',
  '--pending',
]

export function Chart({ label, times, series, stacked = false, format, height = 200, zoom }: ChartProps) {
  const place = useRef<HTMLDivElement>(null)
  const dark = isDark()
  useEffect(() => {
    const element = place.current
    if (element === null || times.length === 0) return
    // What is drawn later stands before the rest: the first of those that stand on each other is the lowest.
    const drawn = stacked ? series.toReversed() : series
    let clear = () => {}
    let over = false
    const draw = (Plot: typeof uPlot) => {
      if (over) return
      const options = optionsOf(Plot, {
        times,
        series: drawn,
        stacked,
        format,
        height,
        width: element.clientWidth,
        zoom,
      })
      options.hooks = { ...options.hooks, setCursor: [readoutIn(element, { times, series, stacked, format })] }
      const plot = new Plot(options, dataOf(times, drawn, stacked), element)
      const watch = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height }))
      watch.observe(element)
      clear = () => {
        watch.disconnect()
        plot.destroy()
        element.replaceChildren()
      }
    }
    // Where it does not come, the legend has the sums; the next answer asks for it again.
    chartLibrary().then(draw, () => undefined)
    return () => {
      over = true
      clear()
    }
  }, [times, series, stacked, height, dark])
  return (
    <figure class="stack close" aria-label={label}>
      <div class="chart" ref={place} aria-hidden="true" />
      <figcaption class="legend">
        {series.map(({ name, colour, sum, to }) => (
          <span key={name}>
            <i class="swatch" style={{ '--tone': `var(${colour})` }} />
            {to === undefined ? userText(name) : <a href={to}>{userText(name)}</a>}
            {sum !== undefined && <strong class="number">{sum}</strong>}
          </span>
        ))}
      </figcaption>
    </figure>
  )
}

const [minute, hour, day] = [60, 3600, 86_400]
/** How far apart instants on the axis may be, in seconds: none is within a bar. */
const ticks = [
  ...[minute, 5 * minute, 10 * minute, 15 * minute, 30 * minute, hour, 2 * hour, 3 * hour, 6 * hour, 12 * hour],
  ...[day, 2 * day, 7 * day, 14 * day, 30 * day, 90 * day],
]

const spanOf = ([first = 0, second = 0]: readonly number[]): number => second - first

const resolved = (variable: string): string => {
  const probe = document.createElement('i')
  probe.style.color = `var(${variable})`
  document.body.append(probe)
  const { color } = getComputedStyle(probe)
  probe.remove()
  return color
}

function optionsOf(
  Plot: typeof uPlot,
  {
    series,
    stacked,
    format,
    height,
    width,
    zoom,
    times,
  }: Pick<ChartProps, 'series' | 'format' | 'zoom' | 'times'> & { stacked: boolean; height: number; width: number },
): uPlot.Options {
  // Each bar fills most of its span and stands at the start of it, which its time is.
  const bars = Plot.paths.bars === undefined ? {} : { paths: Plot.paths.bars({ size: [0.8, 32], align: 1 }) }
  const [ink, line] = [resolved('--ink-3'), resolved('--line')]
  const axis = {
    stroke: ink,
    grid: { stroke: line, width: 1 },
    ticks: { stroke: line, width: 1 },
    font: '12px system-ui',
  }
  return {
    width,
    height,
    padding: [8, 32, 0, 0],
    legend: { show: false },
    cursor: { drag: { x: zoom !== undefined, y: false, setScale: false }, points: { size: 6 } },
    hooks: { setSelect: [(plot) => takeSelected(plot, zoom)] },
    scales: {
      x: { time: true, ...(stacked ? { range: wholeSpans } : {}) },
      y: { range: (_plot, _least, most) => [0, most > 0 ? most * 1.05 : 1] },
    },
    axes: [
      {
        ...axis,
        // Room for the longest label.
        space: 72,
        ...(stacked ? { incrs: ticks.filter((seconds) => seconds >= spanOf(times)) } : {}),
        values: (_plot, instants, _axis, _space, step) => axisTimes(instants, step),
      },
      {
        ...axis,
        // As wide as its longest label: amounts of money can be long.
        size: (_plot, labels) => 16 + 7 * Math.max(4, ...(labels ?? []).map(({ length }) => length)),
        values: (_plot, values) => values.map(format),
      },
    ],
    series: [
      {},
      ...series.map(({ name, colour }) => {
        const stroke = resolved(colour)
        if (stacked) return { label: name, fill: stroke, width: 0, points: { show: false }, ...bars }
        // A value with none beside it makes no line: it has a point also where there is no room for points at all.
        const filter: uPlot.Series.Points.Filter = (plot, index, show) => (show ? null : lonely(plot.data[index] ?? []))
        return { label: name, stroke, width: 1.5, points: { size: 4, fill: stroke, filter } }
      }),
    ],
  }
}

/** Where values have none beside them. */
const lonely = (values: ArrayLike<number | null | undefined>): number[] =>
  Array.from(values).flatMap((value, at, all) =>
    value != null && all[at - 1] == null && all[at + 1] == null ? [at] : [],
  )

/** A click moves the pointer a little too: that much selects nothing. */
const leastPixels = 6

function takeSelected(plot: uPlot, zoom: ChartProps['zoom']): void {
  const { left, width } = plot.select
  if (width < leastPixels) return
  plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false)
  zoom?.(plot.posToVal(left, 'x'), plot.posToVal(left + width, 'x'))
}

/** From the first span to the end of the last. */
const wholeSpans: uPlot.Scale.Range = ({ data: [times = []] }, from, to) => [
  from,
  to + ((times[1] ?? 0) - (times[0] ?? 0)),
]

/** Stacked bars are drawn from the highest to the lowest, so that each shows its own part only. */
function dataOf(times: readonly number[], series: readonly ChartSeries[], stacked: boolean): uPlot.AlignedData {
  const values = series.map((one) => [...one.values])
  if (stacked) {
    for (let index = values.length - 2; index >= 0; index -= 1) {
      const [upper, lower] = [values[index] ?? [], values[index + 1] ?? []]
      values[index] = upper.map((value, at) => (value ?? 0) + (lower[at] ?? 0))
    }
  }
  return [[...times], ...values]
}
