/** The simulator's embeddings and moderations. */
import type { JsonObject } from '../../languages/reading/json-value.ts'
import type { UpstreamCall } from '../provider.ts'
import { contentText, countWords, fingerprint, idOf, limitOf, refusal, wordsOf } from './text.ts'

const defaultDimensions = 256
const mostDimensions = 4096

/**
 * A text's vector is made of its words, so that texts with common words are near each other: each word adds one at a
 * place that its hash chooses. The length is 1, as embeddings' is.
 */
export function answerEmbeddings(call: UpstreamCall, body: JsonObject): Response {
  const dimensions = limitOf(body, ['dimensions']) ?? defaultDimensions
  if (dimensions > mostDimensions) return refusal(400, 'invalid_dimensions', `At most ${mostDimensions} dimensions`)
  const texts = textsOf(body.input)
  const data = texts.map((text, index) => {
    const vector = vectorOf(text, dimensions)
    const embedding =
      body.encoding_format === 'base64' ? Buffer.from(vector.buffer).toString('base64') : Array.from(vector)
    return { object: 'embedding', index, embedding }
  })
  const tokens = countWords(texts)
  return Response.json({
    object: 'list',
    data,
    model: call.model,
    usage: { prompt_tokens: tokens, total_tokens: tokens },
    system_fingerprint: fingerprint,
  })
}

/** Tokens given as numbers are words of their own. */
function textsOf(input: unknown): string[] {
  if (!Array.isArray(input)) return [contentText(input)]
  if (typeof input[0] === 'number') return [input.join(' ')]
  return input.map((text) => (Array.isArray(text) ? text.join(' ') : contentText(text)))
}

function vectorOf(text: string, dimensions: number): Float32Array<ArrayBuffer> {
  const vector = new Float32Array(dimensions)
  for (const word of ['', ...wordsOf(text)]) {
    const place = Bun.hash.crc32(word.trim().toLowerCase()) % dimensions
    vector[place] = (vector[place] ?? 0) + 1
  }
  const length = Math.hypot(...vector)
  return vector.map((value) => value / length)
}

const categories = ['harassment', 'hate', 'illicit', 'self-harm', 'sexual', 'violence'] as const

/** Finds nothing in anything: it knows no language. */
export function answerModerations(call: UpstreamCall, body: JsonObject): Response {
  const count = Array.isArray(body.input) && typeof body.input[0] === 'string' ? body.input.length : 1
  const all = <Value>(value: Value) => Object.fromEntries(categories.map((category) => [category, value]))
  const result = { flagged: false, categories: all(false), category_scores: all(0) }
  return Response.json({
    id: `modr-simulator-${idOf(call)}`,
    model: call.model,
    results: Array.from({ length: count }, () => result),
    system_fingerprint: fingerprint,
  })
}
