/**
 * What limits cost on the hot path: `bun test/load/costs/limits-cost.ts [seconds a round] [rounds]`. The same requests by a
 * token without limits, by ones with each kind of limit, and by one with all, in alternating rounds; printed are
 * requests a second and their ratio to those without limits.
 */
import { createToken } from '../../support/client.ts'
import { startGatehouse } from '../../support/harness.ts'
import { generator, saturate } from '../generator/saturation.ts'
import { median } from '../generator/timing.ts'
import { startBeside } from '../rig/beside.ts'
import { answers, chatTarget, priceModel } from '../rig/everything-on.ts'
import type { Target } from '../rig/target.ts'

const [seconds = '4', rounds = '5'] = process.argv.slice(2)
const connections = 16

using upstream = await startBeside('mock-upstream.ts')
await using gatehouse = await startGatehouse({ upstream: { baseUrl: `${upstream.url}/v1` } })

await priceModel(gatehouse)

const kinds: Readonly<Record<string, object>> = {
  'no limit': {},
  requests: { max_requests: 1_000_000_000 },
  money: { max_budget: 1_000_000 },
  'a minute': { rate_limit_rpm: 100_000_000 },
  all: { max_requests: 1_000_000_000, max_budget: 1_000_000, rate_limit_rpm: 100_000_000 },
}
const targets: Target[] = []
for (const [name, limits] of Object.entries(kinds)) {
  const { token_value: token } = await createToken(gatehouse, limits)
  const target = chatTarget(gatehouse.gatewayUrl, token, name)
  await answers(target)
  await saturate(target, connections, 1)
  targets.push(target)
}

const measured = new Map(targets.map(({ name }): [string, { rate: number; failed: number }[]] => [name, []]))
for (let round = 0; round < Number(rounds); round++) {
  // Each is the first of a round in its turn: a machine may slow down while it is busy.
  for (const target of [...targets.slice(round % targets.length), ...targets.slice(0, round % targets.length)]) {
    const { requestsPerSecond: rate, failed } = await saturate(target, connections, Number(seconds))
    measured.get(target.name)?.push({ rate, failed })
  }
}

const rateOf = (name: string): number => median((measured.get(name) ?? []).map(({ rate }) => rate))
console.log(`${rounds} rounds of ${seconds} s, ${connections} connections, by ${generator}`)
for (const [name, results] of measured) {
  const failed = results.reduce((sum, result) => sum + result.failed, 0)
  const ratio = (rateOf(name) / rateOf('no limit')).toFixed(2)
  console.log(`${name.padEnd(10)} ${rateOf(name).toFixed(0).padStart(7)} /s  ${ratio}  ${failed} failed`)
}
