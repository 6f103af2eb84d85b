/** The simulator's images: a picture of one pixel, whose colour follows from the prompt. */
import { deflateSync } from 'node:zlib'
import type { JsonObject } from '../../languages/reading/json-value.ts'
import { boundaryOf, formParts } from '../../lib/http/multipart.ts'
import type { UpstreamCall } from '../provider.ts'
import { contentText, countWords, created, eventStream, namedFrame } from './text.ts'

const mostImages = 10
const tokensPerImage = 16

interface Asked {
  prompt: string
  count: number
}

export const answerImages = (call: UpstreamCall, body: JsonObject): Response =>
  answer(call, { prompt: contentText(body.prompt), count: countOf(body.n) }, 'image_generation')

export function answerImageEdit(call: UpstreamCall): Response {
  const fields = new Map<string, string>()
  const boundary = boundaryOf(call.contentType)
  const decoder = new TextDecoder()
  for (const { name, filename, span } of boundary === null ? [] : formParts(call.body, boundary).parts) {
    if (filename === null) fields.set(name, decoder.decode(call.body.subarray(...span)))
  }
  return answer(
    call,
    { prompt: fields.get('prompt') ?? '', count: countOf(Number(fields.get('n') ?? 1)) },
    'image_edit',
  )
}

const countOf = (n: unknown): number =>
  typeof n === 'number' && Number.isInteger(n) && n > 0 ? Math.min(n, mostImages) : 1

function answer(call: UpstreamCall, { prompt, count }: Asked, event: string): Response {
  const [input, output] = [countWords([prompt]), count * tokensPerImage]
  const usage = { input_tokens: input, output_tokens: output, total_tokens: input + output }
  const image = pictureOf(prompt)
  if (call.stream) return eventStream(frames(event, image, count, usage))
  return Response.json({ created, data: Array.from({ length: count }, () => ({ b64_json: image })), usage })
}

function* frames(event: string, image: string, count: number, usage: object): Generator<string> {
  for (let index = 0; index < count; index++) {
    yield namedFrame(`${event}.partial_image`, { b64_json: image, partial_image_index: 0, created_at: created })
    yield namedFrame(`${event}.completed`, { b64_json: image, created_at: created, usage })
  }
}

/** A PNG in base64 (PNG specification, third edition: signature, IHDR, IDAT, IEND). */
function pictureOf(prompt: string): string {
  const color = Bun.hash.crc32(prompt)
  const header = Buffer.from([0, 0, 0, 1, 0, 0, 0, 1, 8, 2, 0, 0, 0])
  const pixel = deflateSync(Buffer.from([0, (color >> 16) & 255, (color >> 8) & 255, color & 255]))
  const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
  const chunks = [chunk('IHDR', header), chunk('IDAT', pixel), chunk('IEND', Buffer.alloc(0))]
  return Buffer.concat([signature, ...chunks]).toString('base64')
}

function chunk(type: string, content: Uint8Array): Buffer {
  const named = Buffer.concat([Buffer.from(type, 'latin1'), content])
  const [length, check] = [Buffer.alloc(4), Buffer.alloc(4)]
  length.writeUInt32BE(content.length)
  check.writeUInt32BE(Bun.hash.crc32(named))
  return Buffer.concat([length, named, check])
}
