/**
 * What many values of a dimension cost, each with a budget of its own: `bun test/load/costs/dimension-values.ts [VALUES]`
 * sends one request for each of VALUES (12 000) different values, of which the dimension allows 10 000, and prints the
 * processor time of a request in each part, the memory of gateway and control plane, the rows of the ledger, and how
 * long the lists of values take.
 */
import { Database } from 'bun:sqlite'
import { join } from 'node:path'
import { api, createToken } from '../../support/client.ts'
import { eventually } from '../../support/eventually.ts'
import { startGatehouse } from '../../support/harness.ts'
import { processorSeconds, residentBytes } from '../../support/processes.ts'

const values = Number(process.argv[2] ?? 12_000)
const cap = 10_000
const atOnce = 32

await using gatehouse = await startGatehouse({})
await api(gatehouse, '/v1/attribution-dimensions', {
  body: { name: 'customer', source: { kind: 'header', key: 'x-customer-id' }, max_values: cap },
})
const made = await api(gatehouse, '/v1/budgets', {
  body: { name: 'each', max_budget: 5, window: 'month', scope: { kind: 'organization' }, per: 'customer' },
})
const { id } = made.body as { id: string }
const { token_value: token } = await createToken(gatehouse, { metadata_trust: 'caller' })
const { token_value: free } = await createToken(gatehouse, {})
await Bun.sleep(1000)

const body = JSON.stringify({
  model: 'simulator/lorem',
  max_tokens: 5,
  messages: [{ role: 'user', content: 'hello' }],
})

async function send(customer: string, secret = token): Promise<string> {
  const answer = await fetch(`${gatehouse.gatewayUrl}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json', 'x-customer-id': customer },
    body,
  })
  const text = await answer.text()
  return answer.ok ? '200' : `${answer.status} ${JSON.parse(text).error.code}`
}

const mebibytes = (pid: number): string => (residentBytes(pid) / 2 ** 20).toFixed(0)
const pids = () => [gatehouse.gatewayPid(), gatehouse.controlPlanePid()] as const

async function part(name: string, count: number, customerOf: (index: number) => string, secret = token): Promise<void> {
  const [gateway, control] = pids()
  const before = [processorSeconds(gateway), processorSeconds(control)]
  const began = performance.now()
  const answers = new Map<string, number>()
  let next = 0
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      while (next < count) {
        const answer = await send(customerOf(next++), secret)
        answers.set(answer, (answers.get(answer) ?? 0) + 1)
      }
    }),
  )
  const took = performance.now() - began
  // The events of the last requests are taken into the ledger.
  await Bun.sleep(3000)
  const spent = [processorSeconds(gateway), processorSeconds(control)].map(
    (seconds, index) => ((seconds - (before[index] ?? 0)) * 1e6) / count,
  )
  console.log(
    `${name}: ${count} requests in ${(took / 1000).toFixed(1)} s; processor µs a request: gateway ${spent[0]?.toFixed(0)}, control plane ${spent[1]?.toFixed(0)}; resident MiB: ${mebibytes(gateway)}, ${mebibytes(control)}; ${JSON.stringify(Object.fromEntries(answers))}`,
  )
}

await part('warm-up', 2000, () => 'v0')
await part('without a budget', 4000, () => 'v0', free)
await part('one value', 4000, () => 'v0')
await part(`values up to the cap`, cap, (index) => `v${index}`)
await part('values beyond the cap', values - cap, (index) => `v${cap + index}`)
await part('known values again', 4000, (index) => `v${index}`)
await part('one value again', 4000, () => 'v0')

const ledger = new Database(join(gatehouse.dataDirectory, 'ledger.db'), { readonly: true })
for (const table of ['lease_balances', 'usage_accounts']) {
  console.log(`${table}: ${JSON.stringify(ledger.query(`select count(*) as rows from ${table}`).get())}`)
}
ledger.close()
for (const path of [
  `/v1/budgets/${id}`,
  `/v1/budgets/${id}/values?limit=20`,
  `/v1/budgets/${id}/values?value=v77`,
  '/v1/events/series?since=1h&by=dimension:customer',
]) {
  await eventually(async () => await api(gatehouse, path))
  const began = performance.now()
  const { body: shown } = await api(gatehouse, path)
  console.log(`GET ${path}: ${(performance.now() - began).toFixed(0)} ms, ${JSON.stringify(shown).slice(0, 400)}`)
}
