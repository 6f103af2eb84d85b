/** Starts and look-ups, with few tokens and with very many: how long until ready, and the first request of a token. */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { api, createToken } from '../../support/client.ts'
import { type Gatehouse, startGatehouse, temporaryDirectory } from '../../support/harness.ts'
import { residentBytes } from '../../support/processes.ts'
import { median, timesOf } from '../generator/timing.ts'
import { seedTokens } from '../rig/seed.ts'

export interface TokenCost {
  tokens: number
  ready_ms: number
  /** A request with a token that the gateway has not seen before, and with one that it has. */
  first_use_ms: number
  known_use_ms: number
  /** The first page of the list of tokens. */
  list_ms: number
  gateway_megabytes: number
  control_plane_megabytes: number
}

const lookUps = 50

/** A request that needs no provider. */
async function listModels(gatehouse: Gatehouse, token: string): Promise<void> {
  const answer = await fetch(`${gatehouse.gatewayUrl}/v1/models`, { headers: { authorization: `Bearer ${token}` } })
  await answer.arrayBuffer()
  if (answer.status !== 200) throw new Error(`The gateway refused a token: ${answer.status}`)
}

async function lookUpCost(gatehouse: Gatehouse): Promise<Omit<TokenCost, 'tokens' | 'ready_ms'>> {
  const tokens: string[] = []
  for (let made = 0; made <= lookUps; made++) tokens.push((await createToken(gatehouse)).token_value)
  const use = (index: number) => listModels(gatehouse, tokens[index] ?? '')
  await use(lookUps)
  return {
    first_use_ms: median(await timesOf(lookUps, use)),
    known_use_ms: median(await timesOf(lookUps, () => use(lookUps))),
    list_ms: median(await timesOf(3, () => api(gatehouse, '/v1/tokens'))),
    gateway_megabytes: residentBytes(gatehouse.gatewayPid()) / 1e6,
    control_plane_megabytes: residentBytes(gatehouse.controlPlanePid()) / 1e6,
  }
}

export interface Starts {
  first_ms: number
  second_ms: number
}

/** Milliseconds until ready: in an empty directory, and in one that was started in before. */
export async function measureStarts(repeats: number): Promise<Starts> {
  const [first, second]: [number[], number[]] = [[], []]
  for (let repeat = 0; repeat < repeats; repeat++) {
    const directory = temporaryDirectory()
    const dataDirectory = join(directory, 'data')
    try {
      for (const found of [first, second]) {
        await using gatehouse = await startGatehouse({ dataDirectory })
        found.push(gatehouse.startUpMs)
        await gatehouse.end('SIGTERM')
      }
    } finally {
      rmSync(directory, { recursive: true, force: true })
    }
  }
  return { first_ms: median(first), second_ms: median(second) }
}

/** Measures with a handful of tokens and then with each of the numbers given, ascending, on one installation. */
export async function measureTokens(counts: readonly number[]): Promise<TokenCost[]> {
  const directory = temporaryDirectory()
  const dataDirectory = join(directory, 'data')
  const costs: TokenCost[] = []
  let [adminToken, seeded] = ['', 0]
  try {
    for (const tokens of [0, ...counts]) {
      if (tokens > 0) await seedTokens(dataDirectory, { count: tokens - seeded, present: seeded })
      seeded = tokens
      await using gatehouse = await startGatehouse({ dataDirectory, adminToken })
      adminToken = gatehouse.adminToken
      costs.push({ tokens, ready_ms: gatehouse.startUpMs, ...(await lookUpCost(gatehouse)) })
      await gatehouse.end('SIGTERM')
    }
    return costs
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}
