import { expect, test } from 'bun:test'
import { parts } from '../profile/attribution.ts'
import { type Goal, goals, reached } from './goals.ts'
import { type Measured, names } from './measured.ts'
import { goalTable, lines, tables } from './report.ts'

const cost = (gateway: number, controlPlane: number | null) => ({
  ...{ requests: 1000, failed: 0, requests_per_second: 1e6 / gateway, gateway, main_thread: gateway / 2 },
  ...{
    other_threads: gateway / 2,
    http_client: gateway / 4,
    control_plane: controlPlane,
    context_switches: 1,
    ratio_to_bare: gateway / 20,
  },
  ...{ p50_ms: gateway / 100, p99_ms: gateway / 10, generator_late_p99_ms: 0.1 },
})
const costs = { [names.bare]: cost(20, null), [names.plain]: cost(30, 10), [names.everything]: cost(50, 21.5) }
const frame = (ratio: number) => ({ ...cost(ratio * 20, null), streams: 40, frames_per_read: 1 })
const tokens = (count: number, first: number) => ({
  ...{ tokens: count, ready_ms: 250, first_use_ms: first, known_use_ms: 0.1, list_ms: 5 },
  ...{ gateway_megabytes: 100, control_plane_megabytes: 120 },
})

const measured: Measured = {
  saturated: costs,
  at_rate: { rate: 1234, costs },
  frames: { [names.bare]: frame(1), [names.plain]: frame(1.4), [names.inspected]: frame(2.6) },
  held: [{ name: '512 streams held', failed: 0, first_text: costs }],
  memory: {
    ...{ before_megabytes: 100, requests: 30_000, after_requests_megabytes: 140 },
    ...{ held_streams: 512, after_streams_megabytes: 160 },
  },
  allocations: { [names.plain]: 150, [names.everything]: 190 },
  starts: { first_ms: 400, second_ms: 290 },
  tokens: [tokens(0, 1), tokens(1000, 1.1)],
  record: {
    ...{ requests_sent: 5, outcomes_recorded: 6, exchanges_recorded: 5, exported_per_second: 9 },
    revocation_ms: { p50: 3, p99: 9 },
  },
  syscalls: null,
  where: null,
  skipped: [],
  machine: { processors: 2, model: 'm', bun: '1', taken_by_others: 0, busy: 1 },
}

const rowOf = (all: Measured, figure: string): readonly string[] =>
  goalTable(all).rows.find(([name]) => name?.includes(figure)) ?? []

test('says for each goal what was measured and whether it is reached', () => {
  expect(rowOf(measured, 'no policy: processor time').slice(1)).toEqual(['1.50 ×', '≤ 1.80 ×', 'yes'])
  expect(rowOf(measured, 'gateway, everything on').slice(1)).toEqual(['2.50 ×', '≤ 2.30 ×', 'NO'])
  expect(rowOf(measured, 'control plane, a request').slice(1)).toEqual(['21.5 µs', '≤ 20 µs', 'NO'])
  expect(rowOf(measured, 'throughput').slice(1)).toEqual(['0.400 ×', '≥ 0.500 ×', 'NO'])
  expect(rowOf(measured, 'second start').slice(1)).toEqual(['290 ms', '≤ 300 ms', 'yes'])
  expect(rowOf(measured, 'outcomes that are missing').slice(1)).toEqual(['2', '≤ 0', 'NO'])
  expect(goalTable(measured).rows).toHaveLength(goals.length + 1)
})

test('does not call a goal reached that was not measured, or whose figure is no number', () => {
  expect(rowOf(measured, 'calls of the kernel').slice(1)).toEqual(['', '≤ 1.50 ×', 'not measured'])
  const goal: Goal = { figure: 'some', unit: '', measure: () => null }
  expect(reached({ ...goal, most: 1 }, Number.NaN)).toBe('NO')
  expect(reached({ ...goal, least: 2 }, 1)).toBe('NO')
  expect(reached({ ...goal, least: 2 }, 2)).toBe('yes')
})

test('compares calls of the kernel by perf where both were counted by it, otherwise by strace', () => {
  const counted = (byPerf: number | null, byStrace: number) => ({
    by_perf: byPerf,
    by_strace: byStrace,
    names: { futex: byStrace },
  })
  const with_ = (bare: number | null, governed: number | null) => ({
    ...measured,
    syscalls: { [names.bare]: counted(bare, 10), [names.everything]: counted(governed, 30) },
  })
  expect(rowOf(with_(10, 12), 'calls of the kernel')[1]).toBe('1.20 ×')
  expect(rowOf(with_(10, null), 'calls of the kernel')[1]).toBe('3 ×')
})

test('prints a table of where the microseconds go, whose last row is the sum of the others', () => {
  const attribution = {
    ...{ 'kernel, for the main thread': 10, 'runtime, no JavaScript on the stack': 7 },
    ...{ 'fetch, called from JavaScript': 3, 'JavaScript and what else it calls': 2 },
    ...{ 'HTTP client thread, kernel': 9, 'HTTP client thread, itself': 4, 'other threads': 1.5 },
  }
  const where = { profiler: 'perf', attributions: { bare: attribution }, functions: [], files: ['a.svg'] }
  const found = tables({ ...measured, where }).find(({ title }) => title.startsWith('Where the microseconds go'))
  expect(found?.rows.slice(1, -1).map(([part]) => part)).toEqual([...parts])
  expect(found?.rows.at(-1)).toEqual(['all', '36.5'])
})

test('lays out columns as wide as their widest cell, figures to the right', () => {
  expect(
    lines([
      ['', 'µs'],
      ['plain', '108.9'],
      ['bare', '3'],
    ]),
  ).toEqual(['          µs', 'plain  108.9', 'bare       3'])
})
