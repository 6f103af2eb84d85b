/**
 * Writes a neutral request as a chat completion request. What the language cannot express is refused, naming the
 * caller's field.
 */

import type {
  NeutralMedia,
  NeutralPart,
  NeutralRequest,
  NeutralThought,
  NeutralTool,
  NeutralToolCall,
  NeutralToolResult,
  NeutralTurn,
} from '../../neutral.ts'
import type { JsonObject } from '../../reading/json-value.ts'
import { dataUrl } from '../../translation/data-url.ts'
import { leaveOut } from '../../translation/lenience.ts'
import {
  audioFormats,
  effortOf,
  errorText,
  fileName,
  schemaWords,
  writeHints,
} from '../../translation/openai-shared.ts'
import { settingWriter } from '../../translation/settings.ts'
import { unsupported } from '../../translation/translation-errors.ts'
import type { WriteOptions } from '../../translation-language.ts'
import { chatMembers } from '../members.ts'
import { thoughtMembers } from './reasoning.ts'

const extraMembers = new Set(['verbosity', 'service_tier'])

export function writeChatRequest(request: NeutralRequest, { lenience }: WriteOptions = {}): JsonObject {
  const body: JsonObject = {
    model: request.model,
    messages: messagesOf(request),
    ...settingsOf(request.sampling, lenience),
  }
  const { toolChoice: choice, output, reasoning } = request
  if (request.tools.length > 0) body.tools = request.tools.map(toolOf)
  if (choice !== null) {
    body.tool_choice = typeof choice.value === 'string' ? choice.value : { type: 'function', function: choice.value }
  }
  if (request.parallelTools !== null) body.parallel_tool_calls = request.parallelTools.value
  if (output !== null) body.response_format = formatOf(output.value)
  const effort = reasoning === null ? null : effortOf(reasoning.value)
  if (effort !== null) body.reasoning_effort = effort
  if (request.endUser !== null) body.user = request.endUser.value
  for (const [name, { value, at }] of request.extras) {
    if (!extraMembers.has(name)) throw unsupported(at, 'chat completions have nothing like it')
    body[name] = value
  }
  Object.assign(body, writeHints(request.hints))
  if (request.stream) Object.assign(body, { stream: true, stream_options: { include_usage: true } })
  return body
}

const settingsOf = settingWriter(chatMembers, ({ at }, _topK, lenience) => {
  leaveOut(lenience, at, 'chat completions have no top_k')
})

function formatOf(output: NonNullable<NeutralRequest['output']>['value']): JsonObject {
  if (output.form === 'text') return { type: 'text' }
  return output.form === 'json' ? { type: 'json_object' } : { type: 'json_schema', json_schema: schemaWords(output) }
}

const toolOf = ({ name, description, parameters, strict }: NeutralTool): JsonObject => ({
  type: 'function',
  function: {
    name,
    ...(description !== null && { description }),
    ...(parameters !== null && { parameters }),
    ...(strict !== null && { strict }),
  },
})

const messagesOf = ({ instructions, turns }: NeutralRequest): JsonObject[] => [
  ...instructions.map(({ text }) => ({ role: 'system', content: text })),
  ...turns.flatMap(turnMessages),
]

function turnMessages(turn: NeutralTurn): JsonObject[] {
  if (turn.role === 'tool') return turn.parts.map(resultMessage)
  const name = turn.name === undefined ? {} : { name: turn.name.value }
  if (turn.role === 'assistant') return assistantMessages(turn, name)
  return [{ role: turn.role, content: contentOf(turn.parts), ...name }]
}

function assistantMessages({ parts }: NeutralTurn, name: JsonObject): JsonObject[] {
  const calls = parts.filter((part) => part.kind === 'tool_call')
  const thoughts = parts.filter((part) => part.kind === 'thought').filter(isOwn)
  const refusals = parts.filter((part) => part.kind === 'refusal')
  const spoken = parts.filter(({ kind }) => kind !== 'tool_call' && kind !== 'thought' && kind !== 'refusal')
  if (calls.length + thoughts.length + refusals.length + spoken.length === 0) return []
  return [
    {
      role: 'assistant',
      content: spoken.length === 0 ? null : contentOf(spoken),
      ...name,
      ...thoughtMembers(thoughts),
      ...(refusals.length > 0 && { refusal: refusals.map(({ text }) => text).join('') }),
      ...(calls.length > 0 && { tool_calls: calls.map(callOf) }),
    },
  ]
}

/** This provider cannot use another provider's thoughts, and many refuse members for them. */
const isOwn = ({ language }: NeutralThought): boolean => language === null || language === 'chat'

function callOf({ id, name, arguments: text, signature }: NeutralToolCall): JsonObject {
  return {
    id,
    type: 'function',
    function: { name, arguments: text },
    ...(signature?.language === 'chat' && { extra_content: { google: { thought_signature: signature.text } } }),
  }
}

function resultMessage(part: NeutralPart): JsonObject {
  if (part.kind !== 'tool_result') throw unsupported(part.at, 'only results of tools can stand here')
  return { role: 'tool', tool_call_id: part.callId, content: resultContent(part) }
}

function resultContent({ parts, isError }: NeutralToolResult): unknown {
  const texts = parts.map((part) => {
    if (part.kind === 'text') return part.text
    throw unsupported(part.at, 'results of tools are text in chat completions')
  })
  if (texts.length <= 1) return errorText(texts[0] ?? '', isError)
  return texts.map((text, index) => ({ type: 'text', text: index === 0 ? errorText(text, isError) : text }))
}

/** A single text is written as a string, which every provider of this language takes. */
function contentOf(parts: readonly NeutralPart[]): unknown {
  const [first] = parts
  if (parts.length === 1 && first?.kind === 'text') return first.text
  return parts.map(partOf)
}

function partOf(part: NeutralPart): JsonObject {
  if (part.kind === 'text') return { type: 'text', text: part.text }
  if (part.kind === 'image') return imageOf(part)
  if (part.kind === 'audio') return audioOf(part)
  if (part.kind === 'document') return documentOf(part)
  throw unsupported(part.at, 'cannot stand in a message of chat completions')
}

function imageOf({ source, mediaType, detail, at }: NeutralMedia): JsonObject {
  const looked = detail === undefined ? {} : { detail: detail.value }
  if ('url' in source) return { type: 'image_url', image_url: { url: source.url, ...looked } }
  if (!('base64' in source)) throw unsupported(at, 'chat completions take images by address or as bytes')
  const url = dataUrl({ mediaType: mediaType ?? 'image/png', base64: source.base64 })
  return { type: 'image_url', image_url: { url, ...looked } }
}

function audioOf({ source, mediaType, at }: NeutralMedia): JsonObject {
  const format = audioFormats.get(mediaType ?? '')
  if (!('base64' in source) || format === undefined) throw unsupported(at, 'chat completions take audio as wav or mp3')
  return { type: 'input_audio', input_audio: { data: source.base64, format } }
}

function documentOf({ source, mediaType, title, citations, at }: NeutralMedia): JsonObject {
  if (citations?.value === true) throw unsupported(citations.at, 'chat completions cannot be asked for citations')
  if ('text' in source) return { type: 'text', text: title === undefined ? source.text : `${title}\n\n${source.text}` }
  if ('url' in source) throw unsupported(at, 'chat completions take no documents by address')
  if ('fileId' in source) return { type: 'file', file: { file_id: source.fileId, ...(title && { filename: title }) } }
  const type = mediaType ?? 'application/pdf'
  const file = { filename: fileName(title, type), file_data: dataUrl({ mediaType: type, base64: source.base64 }) }
  return { type: 'file', file }
}
