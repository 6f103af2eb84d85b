/**
 * Cost as it grows: `bun test/load/curves/curves.ts [--full] [NAME...]` prints a table for each curve that is named, or
 * for all, with the ratio of each figure to that of the smallest number. Without `--full` it leaves out the points that
 * take long.
 */
import { parseArgs } from 'node:util'
import { print } from '../bench/report.ts'
import { watchMachine } from '../rig/machine.ts'
import type { Curve } from './curve.ts'
import { curveTable } from './curve.ts'
import { eventCurve, sidecarCurve } from './curve-fleet.ts'
import { limitCurve, modelCurve, policyCurve, termCurve, tokenCurve } from './curve-state.ts'
import { streamCurve } from './curve-streams.ts'

const curves: Readonly<Record<string, Curve>> = {
  tokens: tokenCurve,
  policies: policyCurve,
  terms: termCurve,
  limits: limitCurve,
  models: modelCurve,
  streams: streamCurve,
  events: eventCurve,
  sidecars: sidecarCurve,
}

const { values, positionals } = parseArgs({
  options: { full: { type: 'boolean', default: false } },
  allowPositionals: true,
})
const machine = watchMachine()
for (const name of positionals.length > 0 ? positionals : Object.keys(curves)) {
  const curve = curves[name]
  if (curve === undefined) throw new RangeError(`No curve ${name}: there are ${Object.keys(curves).join(', ')}`)
  print(curveTable(name, await curve(values.full)))
  console.log()
}
console.log(`Others took ${Math.round(machine().taken_by_others * 100)} % of the machine meanwhile`)
process.exit(0)
