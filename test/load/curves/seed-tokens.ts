/**
 * What many tokens cost: `bun test/load/curves/seed-tokens.ts [N]` starts an installation with few tokens and with N (1 000
 * 000), and prints for both the time of list pages, the gateway's start, the memory of both processes, and of a
 * look-up, which is a request with a token that the gateway has not seen before.
 */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { api, createToken } from '../../support/client.ts'
import { type Gatehouse, startGatehouse, temporaryDirectory } from '../../support/harness.ts'
import { residentBytes } from '../../support/processes.ts'
import { median, timesOf } from '../generator/timing.ts'
import { seedTokens } from '../rig/seed.ts'

const pages = ['', '?purpose=integration', '?status=active', '?status=revoked', '?key_class=disposable']
const few = 10

const medianOf = async (rounds: number, work: (round: number) => Promise<unknown>): Promise<number> =>
  Number(median(await timesOf(rounds, work)).toFixed(2))

const residentMegabytes = (pid: number): number => Math.round(residentBytes(pid) / 1024 ** 2)

const models = async (gatehouse: Gatehouse, token: string): Promise<void> => {
  const headers = { authorization: `Bearer ${token}` }
  const answer = await fetch(`${gatehouse.gatewayUrl}/v1/models`, { headers })
  if (answer.status !== 200) throw new Error(`The gateway refused a token: ${answer.status}`)
  await answer.arrayBuffer()
}

async function measure(gatehouse: Gatehouse) {
  const lists: Record<string, number> = {}
  for (const query of pages) {
    lists[query === '' ? 'all' : query.slice(1)] = await medianOf(3, async () => {
      const answer = await api(gatehouse, `/v1/tokens${query}`)
      if (answer.status !== 200) throw new Error(`The list answered ${answer.status}`)
    })
  }
  const made: string[] = []
  for (let n = 0; n < 50; n++) made.push((await createToken(gatehouse)).token_value)
  const [first = ''] = made
  await models(gatehouse, first)
  return {
    listPageMs: lists,
    viewsMs: await medianOf(3, () => api(gatehouse, '/v1/tokens/views')),
    upReadyMs: Math.round(gatehouse.startUpMs),
    controlPlaneMb: residentMegabytes(gatehouse.controlPlanePid()),
    gatewayMb: residentMegabytes(gatehouse.gatewayPid()),
    firstUseMs: await medianOf(made.length - 1, (round) => models(gatehouse, made[round + 1] ?? '')),
    knownUseMs: await medianOf(50, () => models(gatehouse, first)),
  }
}

const count = Number(process.argv[2] ?? 1_000_000)
const directory = temporaryDirectory()
const dataDirectory = join(directory, 'data')
try {
  const first = await startGatehouse({ dataDirectory })
  const { adminToken } = first
  for (let n = 0; n < few; n++) await createToken(first)
  const small = await measure(first)
  await first.end('SIGTERM')
  await first.stop()
  const seeding = performance.now()
  await seedTokens(dataDirectory, { count })
  const seedSeconds = Math.round((performance.now() - seeding) / 1000)
  await using second = await startGatehouse({ dataDirectory, adminToken })
  const large = await measure(second)
  const ratio = { firstUse: large.firstUseMs / small.firstUseMs, knownUse: large.knownUseMs / small.knownUseMs }
  process.stdout.write(`${JSON.stringify({ count, seedSeconds, few: small, many: large, ratio }, null, 2)}\n`)
} finally {
  rmSync(directory, { recursive: true, force: true })
}
