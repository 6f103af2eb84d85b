/** What the bench found, as one table: both figures, their comparison, the figure to reach, and whether it is. */
import type { LedgerCost } from './record.ts'
import type { TokenCost } from './tokens.ts'
import { type Compared, type Latency, streamCounts, type Traffic } from './traffic.ts'

export interface Measured extends Traffic {
  ledger: LedgerCost
  revocation_ms: { p50: number; p99: number }
  /** With few tokens, and with many. */
  tokens: readonly TokenCost[]
}

type Row = readonly [measured: string, direct: string, governed: string, compared: string, goal: string, met: string]

const whole = (value: number): string => Math.round(value).toLocaleString('en')
const milliseconds = (value: number): string => `${value.toFixed(2)} ms`
const times = (value: number): string => `× ${value.toFixed(2)}`
const met = (holds: boolean): string => (holds ? 'yes' : 'NO')

const heading: Row = ['measured', 'pass-through', 'gatehouse', 'compared', 'figure to reach', 'reached']

export const table = (measured: Measured): Row[] => [
  heading,
  ...speedRows(measured),
  ...latencyRows(`latency at ${whole(measured.latency_at_half.requests_per_second)}/s`, measured.latency_at_half),
  ...streamCounts.flatMap((count) => latencyRows(`first token, ${count} streams held`, measured.first_token[count])),
  ...latencyRows(overloadName, measured.first_token_overloaded, false),
  ...processRows(measured),
  ...tokenRows(measured),
  ...recordRows(measured),
]

function speedRows({ requests_per_second: speed, failed }: Measured): Row[] {
  const ratio = speed.governed / speed.direct
  return [
    ['requests/s of the provider alone', whole(speed.upstream), '', '', '', ''],
    [
      'requests/s, 16 connections',
      whole(speed.direct),
      whole(speed.governed),
      times(ratio),
      '≥ 0.75',
      met(ratio >= 0.75),
    ],
    ['… by two workers', whole(speed.direct), whole(speed.workers), times(speed.workers / speed.direct), '', ''],
    ['requests that failed', '', whole(failed), '', '0', met(failed === 0)],
  ]
}

const overloadName = `… ${streamCounts[1]} callers without a pause`

const percent = (share: number): string => `${Math.round(100 * share)} %`
const load = ({ machine_busy: busy, taken_by_others: others }: Latency): string =>
  `${percent(busy)}, ${percent(others)} others`

/** Without `judged` a row says what overload is like: no figure is to be reached in it. */
function latencyRows(name: string, { direct, governed }: Compared, judged = true): Row[] {
  const rows = (['p50_ms', 'p99_ms'] as const).map((share): Row => {
    const added = governed[share] - direct[share]
    const goal = share === 'p99_ms' && judged ? (['≤ + 1 ms', met(added <= 1)] as const) : (['', ''] as const)
    return [
      `${name}, ${share.slice(0, 3)}`,
      milliseconds(direct[share]),
      milliseconds(governed[share]),
      `${added < 0 ? '-' : '+'} ${milliseconds(Math.abs(added))}`,
      ...goal,
    ]
  })
  if (judged) rows.push(['… generator late, p99', ...lateness(direct, governed), '', '', ''])
  return [...rows, ['… machine busy', load(direct), load(governed), '', '', '']]
}

const lateness = (direct: Latency, governed: Latency) =>
  [milliseconds(direct.generator_late_p99_ms), milliseconds(governed.generator_late_p99_ms)] as const

function processRows({ processor_microseconds_a_request: processor, gateway_resident_mebibytes: memory }: Measured) {
  const growth = memory.after / memory.before
  const rows: Row[] = [
    [
      'processor time a request',
      `${whole(processor.direct)} µs`,
      `${whole(processor.gateway)} µs`,
      times(processor.gateway / processor.direct),
      '',
      '',
    ],
    ['… of the control plane', '', `${whole(processor.control_plane)} µs`, '', '', ''],
    [
      `gateway memory, ${whole(memory.requests)} requests`,
      '',
      `${whole(memory.before)} → ${whole(memory.after)} MiB`,
      times(growth),
      '≤ 150 MB, flat',
      met(memory.after * 1024 ** 2 <= 150e6 && growth <= 1.2),
    ],
  ]
  return rows
}

function tokenRows({ tokens }: Measured): Row[] {
  const few = tokens[0]?.first_use_ms ?? Number.NaN
  return tokens.flatMap(({ tokens: count, ready_ms: ready, first_use_ms: first, known_use_ms: known }): Row[] => [
    [`ready, ${whole(count)} tokens`, '', milliseconds(ready), '', '≤ 300 ms', met(ready <= 300)],
    [
      `first request of a token among ${whole(count)}`,
      '',
      milliseconds(first),
      times(first / few),
      count === 0 ? '' : 'as fast as few',
      count === 0 ? '' : met(first / few <= 1.2),
    ],
    ['… of one that is known', '', milliseconds(known), '', '', ''],
  ])
}

function recordRows({ revocation_ms: revocation, ledger, ingested_per_second: ingested }: Measured): Row[] {
  const once = ledger.requests_sent === ledger.outcomes_recorded && ledger.outcomes_in_all === ledger.exchanges_in_all
  return [
    ['revocation, p50', '', milliseconds(revocation.p50), '', '', ''],
    ['revocation, p99', '', milliseconds(revocation.p99), '', '< 100 ms', met(revocation.p99 < 100)],
    ['events ingested a second', '', whole(ingested), '', '', ''],
    ['events exported a second', '', whole(ledger.exported_per_second), '', '', ''],
    [
      'outcomes in the ledger',
      `${whole(ledger.requests_sent)} sent`,
      `${whole(ledger.outcomes_recorded)} recorded`,
      `${whole(ledger.outcomes_in_all)} of ${whole(ledger.exchanges_in_all)} exchanges in all`,
      'exactly once',
      met(once),
    ],
  ]
}

/** Prints rows in columns; the first is their heading. */
export function print(rows: readonly (readonly string[])[]): void {
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? []
  for (const row of rows)
    console.log(
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
}
