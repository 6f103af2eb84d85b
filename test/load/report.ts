/** What the bench found, as one table: both figures, their comparison, and the figure to reach. */

export interface Measured {
  requests_per_second: { upstream: number; direct: number; governed: number; failed: number }
  latency_at_half: Compared & { requests_per_second: number; generator_late_p99_ms: number; failed: number }
  first_token_64_streams: Compared
  /** Processor time of each process, while saturated and until its events were in the ledger. */
  processor_microseconds_a_request: { gateway: number; control_plane: number }
  gateway_resident_mebibytes: { before: number; after: number }
  revocation_ms: { p50: number; p99: number }
  ledger: {
    requests_sent: number
    outcomes_recorded: number
    events_in_all: number
    outcomes_in_all: number
    exchanges_in_all: number
    shipping_after_saturation_ms: number
  }
  ready_ms: number
}

interface Compared {
  direct_p50_ms: number
  governed_p50_ms: number
  direct_p99_ms: number
  governed_p99_ms: number
}

const number = (value: number, digits = 2) => value.toFixed(digits)
const whole = (value: number) => Math.round(value).toLocaleString('en')

/** The rows: what was measured, the bare pass-through, the gateway, what to compare, and the figure to reach. */
export function table(measured: Measured): string[][] {
  const { requests_per_second: speed, latency_at_half: half, first_token_64_streams: token, ledger } = measured
  const processor = measured.processor_microseconds_a_request
  const resident = measured.gateway_resident_mebibytes
  const exactlyOnce =
    ledger.requests_sent === ledger.outcomes_recorded && ledger.outcomes_in_all === ledger.exchanges_in_all
  return [
    ['measured', 'pass-through', 'gatehouse', 'compared', 'figure to reach'],
    [
      'requests/s, 16 connections',
      whole(speed.direct),
      whole(speed.governed),
      `× ${number(speed.governed / speed.direct)}`,
      '≥ 0.75',
    ],
    [
      `latency p50 at ${whole(half.requests_per_second)}/s`,
      `${number(half.direct_p50_ms)} ms`,
      `${number(half.governed_p50_ms)} ms`,
      `+ ${number(half.governed_p50_ms - half.direct_p50_ms)} ms`,
      '',
    ],
    [
      `latency p99 at ${whole(half.requests_per_second)}/s`,
      `${number(half.direct_p99_ms)} ms`,
      `${number(half.governed_p99_ms)} ms`,
      `+ ${number(half.governed_p99_ms - half.direct_p99_ms)} ms`,
      '≤ + 1 ms',
    ],
    [
      'first token p50, 64 streams',
      `${number(token.direct_p50_ms)} ms`,
      `${number(token.governed_p50_ms)} ms`,
      `+ ${number(token.governed_p50_ms - token.direct_p50_ms)} ms`,
      '',
    ],
    [
      'first token p99, 64 streams',
      `${number(token.direct_p99_ms)} ms`,
      `${number(token.governed_p99_ms)} ms`,
      `+ ${number(token.governed_p99_ms - token.direct_p99_ms)} ms`,
      '≤ + 1 ms',
    ],
    ['processor time a request, gateway', '', `${number(processor.gateway, 0)} µs`, '', ''],
    ['processor time a request, control plane', '', `${number(processor.control_plane, 0)} µs`, '', ''],
    [
      'gateway memory',
      '',
      `${number(resident.before, 0)} → ${number(resident.after, 0)} MiB`,
      `× ${number(resident.after / resident.before)}`,
      '≤ 150 MB, flat',
    ],
    ['ready, empty directory', '', `${number(measured.ready_ms, 0)} ms`, '', '≤ 300 ms'],
    ['revocation p50', '', `${number(measured.revocation_ms.p50, 1)} ms`, '', ''],
    ['revocation p99', '', `${number(measured.revocation_ms.p99, 1)} ms`, '', '< 100 ms'],
    [
      'outcomes in the ledger',
      `${ledger.requests_sent} sent`,
      `${ledger.outcomes_recorded} recorded`,
      exactlyOnce ? 'exactly once' : 'NOT exactly once',
      'exactly once',
    ],
  ]
}

export function print(rows: readonly string[][]): void {
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? []
  for (const row of rows) console.log(row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  '))
}
