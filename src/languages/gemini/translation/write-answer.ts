/**
 * Whole answers for callers of Gemini's language.
 *
 * - Thoughts stand in an answer only if the caller asked for them (`includeThoughts`), as in Gemini's own.
 * - What a refusal says is a text, and the finish reason says that it is one: the language has no other place for it.
 * - A call that a limit cut off before its arguments were whole is left out; elsewhere such arguments are no answer.
 */
import { parseExactObject } from '../../../lib/json/exact-json.ts'
import type { Usage } from '../../dialect.ts'
import type { FinishReason, NeutralAnswer, NeutralCitation, NeutralPart, NeutralToolCall } from '../../neutral.ts'
import { isObject, type JsonObject } from '../../reading/json-value.ts'
import { writtenOpaque } from '../../translation/signature.ts'
import { failed, unusable } from '../../translation/translation-errors.ts'
import type { AnswerStart } from '../../translation-language.ts'
import { settingPrefix } from '../members.ts'
import { ownResponse } from '../own-response.ts'
import { markedCallSignature } from './call-signature.ts'

export const finishReasons: Readonly<Record<Exclude<FinishReason, 'error'>, string>> = {
  stop: 'STOP',
  tool_calls: 'STOP',
  length: 'MAX_TOKENS',
  refusal: 'SAFETY',
  content_filter: 'SAFETY',
  pause: 'OTHER',
}

export function writeGeminiAnswer(answer: NeutralAnswer, asked: AnswerStart): JsonObject {
  const { parts, finish, usage } = answer
  if (finish === 'error') throw unusable(failed.message)
  const shown = parts.flatMap((part) => partsOfAnswer(part, finish, showsThoughts(asked)))
  return {
    candidates: [
      {
        content: { parts: shown, role: 'model' },
        finishReason: finishReasons[finish],
        ...citationMember(parts.flatMap((part) => (part.kind === 'text' ? (part.citations ?? []) : []))),
        index: 0,
      },
    ],
    ...usageMember(usage),
    ...headOf(answer, asked),
  }
}

export const headOf = ({ id, model }: Pick<NeutralAnswer, 'id' | 'model'>, asked: AnswerStart): JsonObject => ({
  ...ownResponse(model ?? asked.model, asked.exchangeId),
  ...(id !== null && { responseId: id }),
})

export function showsThoughts({ request }: AnswerStart): boolean {
  const config = request?.[`${settingPrefix}thinkingConfig`]
  return isObject(config) && config.includeThoughts === true
}

/** Sources with an address; the language has no other. */
export function citationMember(citations: readonly NeutralCitation[]): JsonObject {
  const citationSources = citations.flatMap(({ url, title }) =>
    url === null ? [] : [{ uri: url, ...(title !== null && { title }) }],
  )
  return citationSources.length === 0 ? {} : { citationMetadata: { citationSources } }
}

/** Thoughts are counted apart from the answer. */
export function usageMember(usage: Usage | null): JsonObject {
  if (usage === null) return {}
  const { inputTokens, outputTokens, cachedInputTokens, reasoningTokens } = usage
  const [input, output, thought] = [inputTokens ?? 0, outputTokens ?? 0, reasoningTokens ?? 0]
  return {
    usageMetadata: {
      promptTokenCount: input,
      candidatesTokenCount: Math.max(0, output - thought),
      totalTokenCount: input + output,
      ...(cachedInputTokens !== null && { cachedContentTokenCount: cachedInputTokens }),
      ...(reasoningTokens !== null && { thoughtsTokenCount: thought }),
    },
  }
}

/** Gives a call its part; null if its arguments are no object. */
export function callPart({ id, name, arguments: text, signature }: Omit<NeutralToolCall, 'kind' | 'at'>) {
  const args = text.trim() === '' ? {} : parseExactObject(text)
  if (args === null) return null
  const thoughtSignature = signature === undefined ? null : markedCallSignature(id, signature)
  return { functionCall: { id, name, args }, ...(thoughtSignature !== null && { thoughtSignature }) }
}

/** Throws for arguments that are no object, unless a limit or a filter cut them off. */
export function refuseUnlessCut(finish: FinishReason): [] {
  if (finish === 'length' || finish === 'content_filter') return []
  throw unusable('The provider called a tool with arguments that are no JSON object')
}

function partsOfAnswer(part: NeutralPart, finish: FinishReason, shows: boolean): JsonObject[] {
  switch (part.kind) {
    case 'text':
    case 'refusal':
      return part.text === '' ? [] : [{ text: part.text }]
    case 'thought': {
      if (!shows) return []
      const thoughtSignature = writtenOpaque(part, 'gemini')
      return [{ text: part.text, thought: true, ...(thoughtSignature !== null && { thoughtSignature }) }]
    }
    case 'tool_call': {
      const call = callPart(part)
      return call === null ? refuseUnlessCut(finish) : [call]
    }
    default:
      throw unusable('The answer holds media, which this language cannot say')
  }
}
