/** The simulator's Gemini responses: whole, or a stream with one word in each response. */
import { partsIn } from '../../languages/gemini/texts.ts'
import { isObject, type JsonObject, objectsOf } from '../../languages/reading/json-value.ts'
import type { UpstreamCall } from '../provider.ts'
import {
  type Asked,
  contentText,
  countWords,
  dataFrame,
  eventStream,
  idOf,
  limitOf,
  type Said,
  type SimulatedModel,
  say,
} from './text.ts'

export function answerGemini(call: UpstreamCall, body: JsonObject, model: SimulatedModel): Response {
  const { texts, lastText } = readContents(body)
  const { generationConfig: config } = body
  const limit = isObject(config) ? limitOf(config, ['maxOutputTokens']) : null
  const said = say({ model, limit, lastText, texts })
  // The id is a hash of the whole body, so it is computed once, not for each word.
  const head = { modelVersion: call.model, responseId: `simulator-${idOf(call)}` }
  if (call.stream) return eventStream(frames(said, head))
  return Response.json(responseOf(said, head, said.words.join(''), said.words.length, true))
}

/** The count that `usageMetadata.promptTokenCount` of the answer would have. */
export const countContents = (body: JsonObject): Response =>
  Response.json({ input_tokens: countWords(readContents(body).texts) })

function readContents({ contents, systemInstruction }: JsonObject): Pick<Asked, 'texts' | 'lastText'> {
  const list = objectsOf(contents)
  const text = (content: unknown) => contentText(partsIn(content))
  return {
    texts: [text(systemInstruction), ...list.map(text)],
    lastText: text(list.findLast(({ role }) => role !== 'model')),
  }
}

function* frames(said: Said, head: Head): Generator<string> {
  const { words } = said
  if (words.length === 0) yield dataFrame(responseOf(said, head, '', 0, true))
  for (const [index, text] of words.entries()) {
    yield dataFrame(responseOf(said, head, text, index + 1, index === words.length - 1))
  }
}

/** The members that are the same in every response of an answer. */
interface Head {
  modelVersion: string
  responseId: string
}

const responseOf = (said: Said, head: Head, text: string, words: number, isLast: boolean) => ({
  candidates: [
    {
      content: { parts: [{ text }], role: 'model' },
      ...(isLast && { finishReason: said.cut ? 'MAX_TOKENS' : 'STOP' }),
      index: 0,
    },
  ],
  usageMetadata: {
    promptTokenCount: said.inputTokens,
    candidatesTokenCount: words,
    totalTokenCount: said.inputTokens + words,
  },
  ...head,
})
