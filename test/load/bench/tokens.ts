/** Starts and look-ups, with few tokens and with very many: how long until ready, and the first request of a token. */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { createToken } from '../../support/client.ts'
import { type Gatehouse, startGatehouse, temporaryDirectory } from '../../support/harness.ts'
import { median, timesOf } from '../generator/timing.ts'
import { seedTokens } from '../rig/seed.ts'

export interface TokenCost {
  tokens: number
  ready_ms: number
  /** A request with a token that the gateway has not seen before, and with one that it has. */
  first_use_ms: number
  known_use_ms: number
}

const lookUps = 50

/** A request that needs no provider. */
async function listModels(gatehouse: Gatehouse, token: string): Promise<void> {
  const answer = await fetch(`${gatehouse.gatewayUrl}/v1/models`, { headers: { authorization: `Bearer ${token}` } })
  await answer.arrayBuffer()
  if (answer.status !== 200) throw new Error(`The gateway refused a token: ${answer.status}`)
}

async function lookUpCost(gatehouse: Gatehouse): Promise<Pick<TokenCost, 'first_use_ms' | 'known_use_ms'>> {
  const tokens: string[] = []
  for (let made = 0; made <= lookUps; made++) tokens.push((await createToken(gatehouse)).token_value)
  const use = (index: number) => listModels(gatehouse, tokens[index] ?? '')
  await use(lookUps)
  return {
    first_use_ms: median(await timesOf(lookUps, use)),
    known_use_ms: median(await timesOf(lookUps, () => use(lookUps))),
  }
}

/** Measures with a handful of tokens and then with each of the numbers given, ascending, on one installation. */
export async function measureTokens(counts: readonly number[], starts: number): Promise<TokenCost[]> {
  const directory = temporaryDirectory()
  const dataDirectory = join(directory, 'data')
  const costs: TokenCost[] = []
  let [adminToken, seeded] = ['', 0]
  try {
    for (const tokens of [0, ...counts]) {
      if (tokens > 0) await seedTokens(dataDirectory, { count: tokens - seeded, present: seeded })
      seeded = tokens
      const readyMs: number[] = []
      for (let start = 1; start <= starts; start++) {
        await using gatehouse = await startGatehouse({ dataDirectory, adminToken })
        adminToken = gatehouse.adminToken
        readyMs.push(gatehouse.startUpMs)
        if (start === starts) costs.push({ tokens, ready_ms: median(readyMs), ...(await lookUpCost(gatehouse)) })
        await gatehouse.end('SIGTERM')
      }
    }
    return costs
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}
