/** A gateway with one provider of each kind; the test sets each answer by request path. */
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import type { Settings } from '../../config.ts'
import { parseObject } from '../../languages/reading/json-value.ts'
import { compilePrice } from '../../providers/prices/price-record.ts'
import { startTestGateway, type TestGateway } from './gateway.ts'
import { testModel, testProvider } from './worker.ts'

export interface TranslatingGateway {
  running: TestGateway
  openai: OpenAI
  anthropic: Anthropic
  /** The answers of the upstream by request path. */
  answers: Record<string, () => Response | Promise<Response>>
}

export async function startTranslating(settings: Partial<Settings> = {}): Promise<TranslatingGateway> {
  const answers: TranslatingGateway['answers'] = {}
  const running = await startTestGateway(
    (request) => {
      const path = decodeURIComponent(new URL(request.url).pathname)
      return answers[path]?.() ?? new Response(`Nothing at ${path}`, { status: 404 })
    },
    { path_retries: 0, drain_seconds: 0, ...settings },
  )
  const baseUrl = running.worker.upstreams[0]?.baseUrl ?? ''
  const kinds = ['openai', 'anthropic', 'gemini', 'bedrock'] as const
  running.worker.upstreams.length = 0
  for (const kind of kinds) {
    const headers: Record<string, string> = kind === 'bedrock' ? { region: 'eu-central-1' } : {}
    const apiKey = kind === 'bedrock' ? 'AKID:secret' : 'key'
    running.worker.upstreams.push(
      testProvider({ id: kind, name: kind, kind, baseUrl, headers, apiKey, allowUnlistedModels: false }),
    )
    const upstreamModel = kind === 'bedrock' ? 'anthropic.claude:0' : `up-${kind}`
    running.worker.catalog.push(testModel({ id: kind, providerId: kind, upstreamModel, price: price(1) }))
  }
  return {
    running,
    openai: new OpenAI({ apiKey: running.secret, baseURL: `${running.url}/v1`, maxRetries: 0 }),
    anthropic: new Anthropic({ apiKey: running.secret, baseURL: running.url, maxRetries: 0 }),
    answers,
  }
}

export const price = (perMillion: number) =>
  compilePrice({ input_per_million: perMillion, output_per_million: perMillion }, 'operator')

export const sentBody = (running: TestGateway): Record<string, unknown> =>
  parseObject(running.seen.at(-1)?.body ?? '') ?? {}

/** An answer that is a stream of these bytes. */
export const sse = (bytes: Uint8Array | string) => () => splitResponse(Buffer.from(bytes), 'text/event-stream')

/** The bytes in pieces of three, so that frames and characters are cut. */
export function splitResponse(bytes: Buffer, type: string): Response {
  let at = 0
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      if (at >= bytes.length) return controller.close()
      controller.enqueue(new Uint8Array(bytes.subarray(at, at + 3)))
      at += 3
    },
  })
  return new Response(body, { headers: { 'content-type': type } })
}

/** As Gemini frames its streams. */
export const geminiFrames = (frames: readonly object[]): string =>
  frames.map((frame) => `data: ${JSON.stringify(frame)}\r\n\r\n`).join('')
