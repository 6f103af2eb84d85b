/**
 * The providers of the demonstration: a server on this host that speaks the languages of OpenAI and Anthropic. The
 * built-in simulator makes the answers. This server adds what a real provider has and the simulator has not: latency,
 * and now and then a failure. It understands nothing of what it is sent, and sends nothing anywhere.
 */
import { Failure } from '../../../src/failure.ts'
import type { ModelFamily } from '../../../src/languages/families.ts'
import { parseObject } from '../../../src/languages/reading/json-value.ts'
import { simulator } from '../../../src/providers/simulator/simulator.ts'
import type { Chance } from './chance.ts'
import { answerMcp } from './stand-in-mcp.ts'

export interface StandIn {
  /** `http://127.0.0.1:PORT` */
  url: string
  stop(): Promise<void>
}

/** A model whose provider fails most of the time, so that errors and fallbacks are there to be seen. */
export const failingModel = 'gpt-5-preview'

const failingShare = 0.6
const usualFailureShare = 0.015
const bodyLimit = 1024 ** 2

const familyAt: ReadonlyMap<string, ModelFamily> = new Map([
  ['/openai/v1/chat/completions', 'chat'],
  ['/openai/v1/responses', 'responses'],
  ['/openai/v1/embeddings', 'embeddings'],
  ['/anthropic/v1/messages', 'messages'],
])

/** Serves until it is stopped. Latencies and failures are the chance's. */
export function serveStandIn(chance: Chance): StandIn {
  const startedAt = performance.now()
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    maxRequestBodySize: bodyLimit,
    async fetch(request) {
      const { pathname } = new URL(request.url)
      if (pathname === '/mcp') return await answerMcp(request, (performance.now() - startedAt) / 1000)
      const family = familyAt.get(pathname)
      if (family === undefined || request.method !== 'POST') return refused(404, 'There is nothing at this address')
      return await answerModel(family, await request.bytes(), request.signal, chance)
    },
  })
  return { url: `http://127.0.0.1:${server.port}`, stop: () => server.stop(true) }
}

async function answerModel(
  family: ModelFamily,
  body: Uint8Array,
  signal: AbortSignal,
  chance: Chance,
): Promise<Response> {
  const { model, stream } = parseObject(new TextDecoder().decode(body)) ?? {}
  if (typeof model !== 'string') return refused(400, 'The body names no model')
  await Bun.sleep(latencyOf(family, model, chance))
  const fails = chance.next() < (model === failingModel ? failingShare : usualFailureShare)
  if (fails) return refused(503, 'The model is overloaded')
  const call = {
    ...{ family, model: `${model}/lorem`, stream: stream === true, body, contentType: 'application/json' },
    ...{ headers: {}, signal, answerLimit: bodyLimit },
  }
  const provider = { id: '', name: '', kind: 'simulator', baseUrl: null, apiKey: null, headers: {} }
  return await simulator.send({ ...provider, allowUnlistedModels: true }, call, () => {
    throw new Failure('internal', { message: 'The simulator calls nobody' })
  })
}

/** Milliseconds: most answers come soon, some take several times as long. */
function latencyOf(family: ModelFamily, model: string, chance: Chance): number {
  if (family === 'embeddings') return chance.between(10, 60)
  const usual = /mini|haiku/.test(model) ? 90 : 240
  return usual * chance.between(0.7, 1.3) * (chance.next() < 0.06 ? 6 : 1)
}

const refused = (status: number, message: string): Response =>
  Response.json({ type: 'error', error: { type: 'api_error', code: null, message } }, { status })
