/** Streams recorded from providers, as the bytes of an answer. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export interface RecordedStream {
  name: string
  /** The gateway's route that such an answer belongs to. */
  route: '/v1/chat/completions' | '/v1/responses' | '/v1/messages'
  bytes: Buffer
}

const data = join(import.meta.dir, 'recordings')

const folders = {
  'openai-chat': '/v1/chat/completions',
  'openai-responses': '/v1/responses',
  'anthropic-messages': '/v1/messages',
} as const

/** Recorded with frames that are no JSON, so that its answer has no end. */
const broken = 'parallel-tool-call-wrapper.1.chunks.txt'

export function recordedStreams(): RecordedStream[] {
  return Object.entries(folders).flatMap(([folder, route]) =>
    readdirSync(join(data, folder))
      .filter((name) => name.endsWith('.chunks.txt') && name !== broken)
      .map((name) => ({
        name,
        route,
        bytes: framed(route, firstAnswer(readFileSync(join(data, folder, name), 'utf8'))),
      })),
  )
}

/** A recording may hold several answers, one after another; a stream ends with the first. */
function firstAnswer(text: string): string[] {
  const lines = text.trim().split('\n')
  const next = lines.findIndex((line, index) => index > 0 && line.startsWith('{"type":"response.created"'))
  return next < 0 ? lines : lines.slice(0, next)
}

function framed(route: RecordedStream['route'], lines: readonly string[]): Buffer {
  if (route === '/v1/chat/completions') {
    return Buffer.from([...lines, '[DONE]'].map((line) => `data: ${line}\n\n`).join(''))
  }
  return Buffer.from(lines.map((line) => `event: ${/"type":"([^"]+)"/.exec(line)?.[1]}\ndata: ${line}\n\n`).join(''))
}
