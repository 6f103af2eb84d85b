/** What more tokens, policies, terms and models in the state cost a start, a request and the gateway's memory. */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { api, createToken, expectAnswer } from '../../support/client.ts'
import { type Gatehouse, startGatehouse, temporaryDirectory } from '../../support/harness.ts'
import { processorSeconds, residentBytes } from '../../support/processes.ts'
import { measureTokens } from '../bench/tokens.ts'
import { saturate } from '../generator/saturation.ts'
import { type Beside, startBeside } from '../rig/beside.ts'
import { answers, chatTarget, makePolicy, priceModel, termPolicy } from '../rig/everything-on.ts'
import { seedModels, seedPolicies } from '../rig/seed.ts'
import { benchModel, type Target } from '../rig/target.ts'
import { words } from '../rig/words.ts'
import type { Curve, Point } from './curve.ts'

export const tokenCurve: Curve = async (full) => {
  const costs = await measureTokens(full ? [10, 1000, 100_000, 1_000_000] : [10, 1000, 100_000])
  return costs.slice(1).map(({ tokens, ...figures }) => ({ at: tokens, figures: { ...figures } }))
}

/** Policies of which none is for this request, and such as are, with a condition that does not hold. */
export const policyCurve: Curve = async (full) => {
  const counts = full ? [1, 10, 100, 1000] : [1, 10, 100]
  const condition = { kind: 'condition', stages: ['pre_request'], when: 'request.model == "other"' }
  const config = { verdict: 'block', reason_code: 'bench.never' }
  const kept = { grow: seedPolicies, change: (round: number) => ({ when: `request.model == "changed-${round}"` }) }
  const made = async (gatehouse: Gatehouse, targets: object) =>
    `/v1/policies/${await makePolicy(gatehouse, { ...condition, name: 'the first', targets, config })}`
  const others = await growing(counts, { ...kept, begin: (gatehouse) => made(gatehouse, { models: ['other-*'] }) })
  const own = await growing(counts, { ...kept, begin: (gatehouse) => made(gatehouse, {}) })
  return own.map(({ at, figures }, index) => ({
    at,
    figures: { ...figures, 'µs/request, none is for it': others[index]?.figures['µs/request'] ?? Number.NaN },
  }))
}

export const modelCurve: Curve = (full) =>
  growing(full ? [1, 100, 1000, 10_000] : [1, 100, 1000], {
    begin: async () => `/v1/catalog/models/${benchModel}`,
    grow: seedModels,
    change: (round) => ({ max_output_tokens: 200 + round }),
  })

/** Limits that a token has: none, of requests, of money too, and of requests a minute. */
export const limitCurve: Curve = async () => {
  using upstream = await startBeside('mock-upstream.ts')
  await using gatehouse = await begun(upstream)
  await priceModel(gatehouse)
  const kinds = Object.entries({ max_requests: 1_000_000_000, max_budget: 1_000_000, rate_limit_rpm: 100_000_000 })
  const points: Point[] = []
  for (let count = 0; count <= kinds.length; count++) {
    const { token_value: token } = await createToken(gatehouse, Object.fromEntries(kinds.slice(0, count)))
    points.push(await pointOf(count, gatehouse, chatTarget(gatehouse.gatewayUrl, token)))
  }
  return points
}

/** Terms of one policy, which is changed while the gateway runs. */
export const termCurve: Curve = async (full) => {
  using upstream = await startBeside('mock-upstream.ts')
  await using gatehouse = await begun(upstream)
  const target = await priced(gatehouse)
  const points = [await pointOf(0, gatehouse, target)]
  const id = await makePolicy(gatehouse, termPolicy(1))
  for (const count of full ? [10, 100, 1000, 10_000, 100_000] : [10, 100, 1000, 10_000]) {
    const body = { config: { terms: words(count), action: 'block' } }
    const answer = await api(gatehouse, `/v1/policies/${id}`, { method: 'PATCH', body })
    expectAnswer(answer, 200, z.looseObject({}))
    points.push(await pointOf(count, gatehouse, target))
  }
  return points
}

interface Growing {
  /** Makes the first, of which the others are copies, and gives its path. */
  begin(gatehouse: Gatehouse): Promise<string>
  grow(dataDirectory: string, numbered: { count: number; present: number }): Promise<void>
  /** What is changed of the first, another time in each round. */
  change(round: number): object
}

/** Puts more and more into the state of one installation, each time with a start of its own. */
async function growing(counts: readonly number[], { begin, grow, change }: Growing): Promise<Point[]> {
  const directory = temporaryDirectory()
  const dataDirectory = join(directory, 'data')
  using upstream = await startBeside('mock-upstream.ts')
  const points: Point[] = []
  let [present, adminToken, token, path] = [0, '', '', '']
  try {
    for (const count of counts) {
      if (present > 0) await grow(dataDirectory, { count: count - present, present: present - 1 })
      await using gatehouse = await begun(upstream, { dataDirectory, adminToken })
      adminToken = gatehouse.adminToken
      if (present === 0) {
        path = await begin(gatehouse)
        token = (await priced(gatehouse)).token
      }
      present = count
      const { at, figures } = await pointOf(count, gatehouse, chatTarget(gatehouse.gatewayUrl, token))
      const changeMs = await changeCost(gatehouse, path, change)
      points.push({ at, figures: { ...figures, 'ready ms': gatehouse.startUpMs, 'gateway ms/change': changeMs } })
      await gatehouse.end('SIGTERM')
    }
    return points
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

/** Processor milliseconds of the gateway for one change, which is answered when the gateway has it. */
async function changeCost(gatehouse: Gatehouse, path: string, change: Growing['change']): Promise<number> {
  const changes = 10
  const before = processorSeconds(gatehouse.gatewayPid())
  for (let round = 0; round < changes; round++) {
    const answer = await api(gatehouse, path, { method: 'PATCH', body: change(round) })
    expectAnswer(answer, 200, z.looseObject({}))
  }
  return ((processorSeconds(gatehouse.gatewayPid()) - before) * 1000) / changes
}

const begun = (upstream: Beside, existing: { dataDirectory?: string; adminToken?: string } = {}): Promise<Gatehouse> =>
  startGatehouse({ ...existing, upstream: { baseUrl: `${upstream.url}/v1` } })

/** A target that no policy or limit is about yet. */
async function priced(gatehouse: Gatehouse): Promise<Target> {
  await priceModel(gatehouse)
  return chatTarget(gatehouse.gatewayUrl, (await createToken(gatehouse)).token_value)
}

const rounds = 3
const roundSeconds = 2

async function pointOf(at: number, gatehouse: Gatehouse, target: Target): Promise<Point> {
  await answers(target)
  const costs: number[] = []
  // The first round is for warming up, the best of the others counts: what disturbs can only add.
  for (let round = 0; round <= rounds; round++) {
    const before = processorSeconds(gatehouse.gatewayPid())
    const { requests, failed } = await saturate(target, 16, roundSeconds)
    if (failed > 0) throw new Error(`${failed} requests failed`)
    const spent = processorSeconds(gatehouse.gatewayPid()) - before
    if (round > 0) costs.push((spent * 1e6) / requests)
  }
  return {
    at,
    figures: {
      'µs/request': Math.min(...costs),
      'gateway MiB': residentBytes(gatehouse.gatewayPid()) / 1024 ** 2,
    },
  }
}
