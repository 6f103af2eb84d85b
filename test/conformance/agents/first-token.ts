/** How much later an agent's first token comes through the gateway, for a long request and the same provider. */
import type { JsonObject } from '../../../src/languages/reading/json-value.ts'
import { objectsOf } from '../../../src/languages/reading/json-value.ts'
import type { Installation } from './matrix.ts'
import { clients, columns, requestsOf } from './rows-and-columns.ts'

export interface FirstToken {
  requestBytes: number
  /** Medians in milliseconds, from the start of the request to the first byte of the body. */
  direct: number
  through: number
}

const requestBytes = 150_000
const rounds = 40
const warmUps = 10

/** Asks the provider and the gateway by turns, one at a time, so that both see the same machine. */
export async function measureFirstToken(installation: Installation, model: string): Promise<FirstToken> {
  const { gatehouse, upstream, token } = installation
  const [client] = clients
  const [request = {}] = client === undefined ? [] : await requestsOf(client)
  const body = lengthened(request)
  const path = '/v1/messages?beta=true'
  const { origin } = new URL(upstream.baseUrl)
  const upstreamModel = columns.find(({ kind }) => kind === 'anthropic')?.upstreamModel
  const times = { direct: [] as number[], through: [] as number[] }
  for (let round = 0; round < rounds + warmUps; round++) {
    const direct = await firstByte(origin + path, 'key', { ...body, model: upstreamModel })
    const through = await firstByte(gatehouse.gatewayUrl + path, token, { ...body, model })
    if (round < warmUps) continue
    times.direct.push(direct)
    times.through.push(through)
  }
  return { requestBytes: JSON.stringify(body).length, direct: median(times.direct), through: median(times.through) }
}

/** A file that was read stands in the first turn, as it does later in a real conversation. */
function lengthened(request: JsonObject): JsonObject {
  const missing = requestBytes - JSON.stringify(request).length
  const line = 'export const retryAfter = (attempt: number): number => Math.min(250 * 2 ** attempt, 30_000)\n'
  const file = line.repeat(Math.ceil(missing / line.length)).slice(0, missing)
  const [first, ...rest] = objectsOf(request.messages)
  return {
    ...request,
    messages: [{ ...first, content: [...objectsOf(first?.content), { type: 'text', text: file }] }, ...rest],
  }
}

async function firstByte(url: string, key: string, body: object): Promise<number> {
  const headers = { 'x-api-key': key, 'content-type': 'application/json', 'anthropic-version': '2023-06-01' }
  const text = JSON.stringify(body)
  const startedAt = performance.now()
  const answer = await fetch(url, { method: 'POST', headers, body: text })
  const reader = answer.body?.getReader()
  await reader?.read()
  const time = performance.now() - startedAt
  if (answer.status !== 200) throw new Error(`${url} answered ${answer.status}`)
  while (reader && !(await reader.read()).done);
  return time
}

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0
