/** The simulator's rerank: what shares words with the query comes first. */
import { isObject, type JsonObject } from '../../languages/reading/json-value.ts'
import type { UpstreamCall } from '../provider.ts'
import { contentText, countWords } from './text.ts'

/** Documents in the order of how many words of the query they have. */
export function answerRerank(call: UpstreamCall, body: JsonObject): Response {
  const query = new Set(wordsIn(contentText(body.query)))
  const documents = (Array.isArray(body.documents) ? body.documents : []).map((document: unknown) =>
    isObject(document) ? contentText(document.text) : contentText(document),
  )
  const results = documents
    .map((text, index) => {
      const words = wordsIn(text)
      return { index, relevance_score: words.filter((word) => query.has(word)).length / Math.max(1, words.length) }
    })
    .toSorted((one, other) => other.relevance_score - one.relevance_score)
    .slice(0, typeof body.top_n === 'number' && body.top_n > 0 ? body.top_n : undefined)
  const tokens = countWords([contentText(body.query), ...documents])
  return Response.json({ model: call.model, results, usage: { prompt_tokens: tokens, total_tokens: tokens } })
}

const wordsIn = (text: string): string[] => text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []
