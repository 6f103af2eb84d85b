/** Reads and writes whole responses. Items that a provider's own tools left (a search) are its own affair. */

import { annotationsIn } from '../../chat/translation/annotations.ts'
import type { FinishReason, NeutralAnswer, NeutralPart } from '../../neutral.ts'
import { isObject, type JsonObject, objectsOf, textOf } from '../../reading/json-value.ts'
import { readOpenAiError } from '../../translation/openai-shared.ts'
import { ownOpaque } from '../../translation/signature.ts'
import { failed, unusable } from '../../translation/translation-errors.ts'
import type { AnswerStart } from '../../translation-language.ts'
import { readUsage } from '../answer.ts'
import { offeredTools } from '../offered-tools.ts'
import {
  annotationOf,
  callItem,
  callPrefix,
  endOf,
  itemId,
  lastCutOff,
  messageItem,
  reasoningItem,
  refusalPart,
  responseBody,
  textPart,
} from './items.ts'
import { readThought } from './read-request.ts'
import { toolsByName } from './tools.ts'

export function readResponsesAnswer(body: unknown): NeutralAnswer {
  if (!isObject(body) || !Array.isArray(body.output)) throw unusable("The provider's answer is no response")
  if (body.status === 'failed') throw unusable(readOpenAiError(null, body).message)
  const parts = objectsOf(body.output).flatMap(partsOf)
  return {
    id: textOf(body.id),
    model: textOf(body.model),
    parts,
    finish: finishOf(body, parts),
    stopSequence: null,
    usage: readUsage(body),
  }
}

/** Calls that the caller would have to answer, in a form that no other language has. */
const foreignCalls = new Set([
  'custom_tool_call',
  'local_shell_call',
  'shell_call',
  'apply_patch_call',
  'computer_call',
])

export function checkItem({ type }: JsonObject): void {
  if (!foreignCalls.has(textOf(type) ?? '')) return
  throw unusable(`The provider's answer holds a ${textOf(type)}, which was not asked for`)
}

function partsOf(item: JsonObject): NeutralPart[] {
  checkItem(item)
  if (item.type === 'message') return objectsOf(item.content).flatMap(spokenPart)
  if (item.type === 'reasoning') {
    const thought = readThought(item, '', ownOpaque)
    return thought === null ? [] : [thought]
  }
  if (item.type !== 'function_call') return []
  const [id, name, text] = [textOf(item.call_id) ?? '', textOf(item.name) ?? '', textOf(item.arguments) ?? '']
  return [{ kind: 'tool_call', id, name, arguments: text, at: '' }]
}

function spokenPart(part: JsonObject): NeutralPart[] {
  if (part.type === 'refusal') return [{ kind: 'refusal', text: textOf(part.refusal) ?? '', at: '' }]
  const text = textOf(part.text)
  const citations = annotationsIn(part.annotations)
  return text === null ? [] : [{ kind: 'text', text, ...(citations.length > 0 && { citations }), at: '' }]
}

/** Why a response ended, whole or in a stream's last event. */
export function finishOf(response: JsonObject, parts: readonly Pick<NeutralPart, 'kind'>[]): FinishReason {
  if (response.status === 'incomplete') {
    const details = response.incomplete_details
    return isObject(details) && details.reason === 'content_filter' ? 'content_filter' : 'length'
  }
  if (parts.some(({ kind }) => kind === 'tool_call')) return 'tool_calls'
  return parts.some(({ kind }) => kind === 'refusal') ? 'refusal' : 'stop'
}

export function writeResponsesAnswer(answer: NeutralAnswer, asked: AnswerStart): JsonObject {
  if (answer.finish === 'error') throw unusable(failed.message)
  const end = endOf(answer.finish, answer.parts)
  const output = outputOf(answer.parts, asked)
  return responseBody(asked, answer.model, {
    ...end,
    output: end.status === 'incomplete' ? lastCutOff(output) : output,
    usage: answer.usage,
  })
}

/** Texts and refusals that follow each other are one message. */
function outputOf(parts: readonly NeutralPart[], { exchangeId, request }: AnswerStart): JsonObject[] {
  const tools = toolsByName(offeredTools(request ?? {}))
  const output: JsonObject[] = []
  let content: JsonObject[] | null = null
  for (const part of parts) {
    const spoken = spokenContent(part)
    if (spoken !== null) {
      if (content === null) {
        content = []
        output.push(messageItem(itemId('msg', exchangeId, output.length), content, 'completed'))
      }
      content.push(spoken)
      continue
    }
    content = null
    if (part.kind === 'thought') output.push(reasoningItem(itemId('rs', exchangeId, output.length), part.text, part))
    if (part.kind === 'tool_call') {
      const standIn = tools.get(part.name) ?? null
      output.push(callItem(itemId(callPrefix(standIn), exchangeId, output.length), part, 'completed', standIn))
    }
  }
  return output
}

function spokenContent(part: NeutralPart): JsonObject | null {
  if (part.kind === 'refusal') return refusalPart(part.text)
  if (part.kind !== 'text') return null
  const { text, citations = [] } = part
  return textPart(
    text,
    citations.map((citation) => annotationOf(citation, text.length)),
  )
}
