/** What the bench found, as tables: the contenders side by side, then the figures that are to be reached. */
import { parts } from '../profile/attribution.ts'
import type { Syscalls } from '../profile/syscalls.ts'
import type { Cost, Latency } from './cost.ts'
import type { FrameCost } from './frames.ts'
import { type Goal, goals, reached } from './goals.ts'
import { type ByName, type Measured, of } from './measured.ts'

export interface Table {
  title: string
  /** The first row is the heading. */
  rows: readonly (readonly string[])[]
}

const whole = (value: number): string => Math.round(value).toLocaleString('en')
const micros = (value: number): string => value.toFixed(1)
const millis = (value: number): string => value.toFixed(2)
const times = (value: number): string => `× ${value.toFixed(2)}`
const megabytes = (value: number): string => `${whole(value)} MB`

/** What stands in each column of a row. */
type Columns<Value> = Readonly<Record<string, (value: Value) => string>>

/** A row for each name. */
function tableOf<Value>(title: string, found: ByName<Value>, columns: Columns<Value>): Table {
  const rows = Object.entries(found).map(([name, value]) => [
    name,
    ...Object.values(columns).map((cell) => cell(value)),
  ])
  return { title, rows: [['', ...Object.keys(columns)], ...rows] }
}

const optional = (value: number | null): string => (value === null ? '' : micros(value))

const costColumns: Columns<Cost> = {
  'requests/s': ({ requests_per_second: value }) => whole(value),
  'gateway µs': ({ gateway }) => micros(gateway),
  'to bare': ({ ratio_to_bare: ratio }) => times(ratio),
  'main thread': ({ main_thread: value }) => micros(value),
  'other threads': ({ other_threads: value }) => micros(value),
  'of them HTTP': ({ http_client: value }) => micros(value),
  'control plane µs': ({ control_plane: value }) => optional(value),
  switches: ({ context_switches: value }) => value.toFixed(2),
  failed: ({ failed }) => whole(failed),
}

const latencyColumns: Columns<Latency> = {
  'p50 ms': ({ p50_ms: value }) => millis(value),
  'p99 ms': ({ p99_ms: value }) => millis(value),
  'generator late p99': ({ generator_late_p99_ms: value }) => (Number.isNaN(value) ? '' : millis(value)),
}

const frameColumns: Columns<FrameCost> = {
  'gateway µs': ({ gateway }) => micros(gateway),
  'to bare': ({ ratio_to_bare: ratio }) => times(ratio),
  'main thread': ({ main_thread: value }) => micros(value),
  'other threads': ({ other_threads: value }) => micros(value),
  'control plane µs': ({ control_plane: value }) => optional(value),
  'frames a read': ({ frames_per_read: value }) => value.toFixed(2),
  streams: ({ streams }) => whole(streams),
  failed: ({ failed }) => whole(failed),
}

export function tables(measured: Measured): Table[] {
  const { saturated, at_rate: atRate, frames, held, syscalls, where } = measured
  return [
    tableOf('Processor time a request, 16 connections that are never idle', saturated, costColumns),
    tableOf<Cost & Latency>(`The same at ${whole(atRate.rate)} requests a second, and latency`, atRate.costs, {
      ...costColumns,
      ...latencyColumns,
    }),
    tableOf('Processor time a frame, streams of 40 frames of text in 41 writes', frames, frameColumns),
    ...held.map(({ name, first_text: first }) => tableOf(`Time to the first text, ${name}`, first, latencyColumns)),
    ...(syscalls === null ? [] : syscallTables(syscalls)),
    ...(where === null ? [] : whereTables(where)),
    otherTable(measured),
    goalTable(measured),
  ]
}

function syscallTables(syscalls: NonNullable<Measured['syscalls']>): Table[] {
  const counted = (value: number | null) => (value === null ? 'not counted' : value.toFixed(2))
  const seen = new Set(Object.values(syscalls).flatMap(({ names: found }) => Object.keys(found)))
  const often = [...seen].filter((name) => Object.values(syscalls).some((found) => (found.names[name] ?? 0) >= 0.05))
  const columns = often.map((name) => {
    const cell = ({ names: found }: Syscalls) => (found[name] ?? 0).toFixed(2)
    return [name, cell] as const
  })
  return [
    tableOf('Calls of the kernel a request', syscalls, {
      'by perf stat': ({ by_perf: value }) => counted(value),
      'by strace, which slows down': ({ by_strace: value }) => counted(value),
      ...Object.fromEntries(columns),
    }),
  ]
}

function whereTables({ profiler, attributions, functions, files }: NonNullable<Measured['where']>): Table[] {
  const found = Object.keys(attributions)
  const rows = parts.map((part) => [part, ...found.map((name) => micros(of(attributions, name)[part]))])
  const sums = found.map((name) => micros(parts.reduce((sum, part) => sum + of(attributions, name)[part], 0)))
  return [
    {
      title: `Where the microseconds go, by ${profiler}`,
      rows: [['µs a request', ...found], ...rows, ['all', ...sums]],
    },
    {
      title: `Functions, everything on, with the native code that each calls (${files.join(', ')})`,
      rows: [['function', 'µs a request'], ...functions.map(({ name, time }) => [name, micros(time)])],
    },
  ]
}

function otherTable({ allocations, memory, starts, tokens, record }: Measured): Table {
  const { requests_sent: sent, outcomes_recorded: outcomes, exchanges_recorded: exchanges } = record
  return {
    title: 'Besides',
    rows: [
      ['figure', 'measured'],
      ...Object.entries(allocations).map(([name, count]) => [`objects made for a request, ${name}`, whole(count)]),
      ['memory of the gateway, warm', megabytes(memory.before_megabytes)],
      [`… after ${whole(memory.requests)} requests`, megabytes(memory.after_requests_megabytes)],
      [`… after ${whole(memory.held_streams)} streams were held`, megabytes(memory.after_streams_megabytes)],
      ['ready, first start', `${whole(starts.first_ms)} ms`],
      ['ready, second start', `${whole(starts.second_ms)} ms`],
      ...tokens.flatMap((cost) => [
        [`ready, ${whole(cost.tokens)} tokens`, `${whole(cost.ready_ms)} ms`],
        ['… first request of a token, of a known one', `${millis(cost.first_use_ms)}, ${millis(cost.known_use_ms)} ms`],
        ['… first page of the list', `${millis(cost.list_ms)} ms`],
        [
          '… memory of gateway and control plane',
          `${megabytes(cost.gateway_megabytes)}, ${megabytes(cost.control_plane_megabytes)}`,
        ],
      ]),
      ['revocation, p50, p99', `${millis(record.revocation_ms.p50)}, ${millis(record.revocation_ms.p99)} ms`],
      ['events exported a second', whole(record.exported_per_second)],
      ['requests sent, outcomes, exchanges', [sent, outcomes, exchanges].map(whole).join(', ')],
    ],
  }
}

const shown = ({ unit }: Goal, value: number): string =>
  `${Number.isInteger(value) || value >= 100 ? whole(value) : value.toPrecision(3)} ${unit}`.trim()

export function goalTable(measured: Measured): Table {
  const rows = goals.map((goal) => {
    const found = goal.measure(measured)
    const limit = goal.most === undefined ? `≥ ${shown(goal, goal.least ?? 0)}` : `≤ ${shown(goal, goal.most)}`
    return [goal.figure, found === null ? '' : shown(goal, found), limit, reached(goal, found)]
  })
  return { title: 'Goals', rows: [['figure', 'measured', 'goal', 'reached'], ...rows] }
}

/** Lays rows out in columns; the first is their heading. */
export function lines(rows: readonly (readonly string[])[]): string[] {
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? []
  return rows.map((row) =>
    row
      .map((cell, column) => (column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0)))
      .join('  ')
      .trimEnd(),
  )
}

export function print(rows: readonly (readonly string[])[]): void {
  for (const line of lines(rows)) console.log(line)
}
