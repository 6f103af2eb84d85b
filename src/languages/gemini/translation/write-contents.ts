/**
 * A conversation as Gemini's contents: turns of `user` and `model`, function responses in the user's turn right after
 * the calls. Consecutive turns of one side become one.
 *
 * Thought signatures are on parts and come back on them (Gemini API, Thought signatures): a call's on the call, a
 * thought's on the thought, and a text's on an empty text after it, as streams bring it. From the third generation on
 * a model refuses a step whose first call has no signature. For calls that another model made, or whose caller could
 * not keep the signature, the gateway writes the documented text that skips the check. Thoughts that Gemini has not
 * signed are left out.
 */

import { parseExactObject } from '../../../lib/json/exact-json.ts'
import type {
  NeutralMedia,
  NeutralPart,
  NeutralThought,
  NeutralToolCall,
  NeutralToolResult,
  NeutralTurn,
} from '../../neutral.ts'
import type { JsonObject } from '../../reading/json-value.ts'
import { unsupported } from '../../translation/translation-errors.ts'

interface Content {
  role: 'user' | 'model'
  parts: JsonObject[]
}

export const skipsCheck = 'skip_thought_signature_validator'

/** Models before the third generation: their thinking has a budget, and they check no signatures. */
export const isBeforeThird = (model: string): boolean => /gemini-(?:1|2)[.-]/.test(model)

export function contentsOf(turns: readonly NeutralTurn[], model: string): Content[] {
  const names = new Map<string, string>()
  const contents: Content[] = []
  for (const turn of turns) {
    if (turn.role === 'system') {
      throw unsupported(turn.at, 'this provider takes instructions only before the conversation')
    }
    if (turn.name !== undefined) throw unsupported(turn.name.at, 'speakers have no names at this provider')
    const role = turn.role === 'assistant' ? 'model' : 'user'
    const parts = turn.parts.flatMap((part) => partsOf(part, names))
    const last = contents.at(-1)
    if (last?.role === role) last.parts.push(...parts)
    else if (parts.length > 0) contents.push({ role, parts })
  }
  if (!isBeforeThird(model)) for (const { role, parts } of contents) if (role === 'model') signFirstCall(parts)
  return contents
}

function signFirstCall(parts: JsonObject[]): void {
  const index = parts.findIndex((part) => part.functionCall !== undefined)
  const call = parts[index]
  if (call !== undefined && call.thoughtSignature === undefined)
    parts[index] = { ...call, thoughtSignature: skipsCheck }
}

/** `names` of calls by their ids, collected on the way. */
function partsOf(part: NeutralPart, names: Map<string, string>): JsonObject[] {
  switch (part.kind) {
    case 'text':
    case 'refusal':
      return part.text === '' ? [] : [{ text: part.text }]
    case 'tool_call':
      names.set(part.id, part.name)
      return [callPart(part)]
    case 'tool_result':
      return [resultPart(part, part.name ?? names.get(part.callId))]
    case 'thought':
      return thoughtParts(part)
    default:
      return mediaParts(part)
  }
}

function callPart({ id, name, arguments: text, signature, at }: NeutralToolCall): JsonObject {
  const args = text.trim() === '' ? {} : parseExactObject(text)
  if (args === null) throw unsupported(at, 'the arguments of a tool call must be a JSON object')
  return {
    functionCall: { id, name, args },
    ...(signature?.language === 'gemini' && { thoughtSignature: signature.text }),
  }
}

function thoughtParts({ text, signature, language }: NeutralThought): JsonObject[] {
  if (language !== 'gemini' || signature === null) return []
  return [{ text, ...(text !== '' && { thought: true }), thoughtSignature: signature }]
}

/**
 * A result is an object: `output`, or `error` for one that failed; media stand in `parts`, as bytes (Gemini API,
 * FunctionResponse, FunctionResponsePart).
 */
function resultPart({ callId, parts, isError, at }: NeutralToolResult, name: string | undefined): JsonObject {
  if (name === undefined) throw unsupported(at, 'no earlier message holds the call of this result')
  const texts: string[] = []
  const media: JsonObject[] = []
  for (const part of parts) {
    if (part.kind === 'text') texts.push(part.text)
    else if ('base64' in part.source && part.mediaType !== null) media.push(...mediaParts(part))
    else throw unsupported(part.at, 'this provider takes media in a tool result only as bytes with their media type')
  }
  const said = texts.length > 1 ? texts : (texts[0] ?? '')
  const response = { [isError ? 'error' : 'output']: said }
  return { functionResponse: { id: callId, name, response, ...(media.length > 0 && { parts: media }) } }
}

/** A document's title has no member: it is a text before the document. */
function mediaParts(media: NeutralMedia): JsonObject[] {
  const { source, mediaType, title, citations, at } = media
  if (citations?.value) throw unsupported(citations.at, 'this provider does not cite documents')
  const named = title === undefined ? [] : [{ text: title }]
  if ('text' in source) {
    return [...named, { inlineData: { mimeType: 'text/plain', data: Buffer.from(source.text).toString('base64') } }]
  }
  if ('url' in source) {
    return [...named, { fileData: { fileUri: source.url, ...(mediaType !== null && { mimeType: mediaType }) } }]
  }
  if ('base64' in source && mediaType !== null)
    return [...named, { inlineData: { mimeType: mediaType, data: source.base64 } }]
  throw unsupported(at, 'send it as bytes with their media type, or its address: files belong to one provider')
}
