/**
 * A conversation as Anthropic's messages: content blocks in turns of `user` and `assistant`, tool results in the
 * user's turn right after the calls. Consecutive turns of one side become one, as the API itself reads them, so that
 * all results of parallel calls are together.
 *
 * Another provider's thoughts, signatures and citations are left out: only the provider that signed a thought can
 * read it, and the cited text is in the conversation anyway.
 */

import { parseExactObject } from '../../../lib/json/exact-json.ts'
import type {
  NeutralCitation,
  NeutralMedia,
  NeutralPart,
  NeutralText,
  NeutralThought,
  NeutralToolCall,
  NeutralTurn,
} from '../../neutral.ts'
import type { JsonObject } from '../../reading/json-value.ts'
import { plainCallId } from '../../translation/call-id.ts'
import { unsupported } from '../../translation/translation-errors.ts'

interface Message {
  role: 'user' | 'assistant' | 'system'
  content: JsonObject[]
}

const roles = { system: 'system', user: 'user', tool: 'user', assistant: 'assistant' } as const

export function messagesOf(turns: readonly NeutralTurn[]): Message[] {
  const messages: Message[] = []
  for (const { role: side, parts, name } of turns) {
    if (name !== undefined) throw unsupported(name.at, 'speakers have no names at this provider')
    const role = roles[side]
    const content = parts.flatMap(blocksOf)
    const last = messages.at(-1)
    if (last?.role === role) last.content.push(...content)
    else if (content.length > 0) messages.push({ role, content })
  }
  return messages
}

/** The blocks of a part: one, or none for a part that is left out and for an empty text, which the API refuses. */
export function blocksOf(part: NeutralPart): JsonObject[] {
  const { cache } = part
  const marked = (block: JsonObject): JsonObject[] => [
    cache === undefined ? block : { ...block, cache_control: cacheControl(cache.value.ttl) },
  ]
  switch (part.kind) {
    case 'text':
      return part.text === '' ? [] : marked(textBlock(part))
    case 'refusal':
      return part.text === '' ? [] : marked({ type: 'text', text: part.text })
    case 'tool_call':
      return marked(callBlock(part))
    case 'tool_result':
      return marked({
        type: 'tool_result',
        tool_use_id: plainCallId(part.callId),
        ...(part.parts.length > 0 && { content: part.parts.flatMap(blocksOf) }),
        ...(part.isError && { is_error: true }),
      })
    case 'thought':
      return thoughtBlocks(part)
    default:
      return marked(mediaBlock(part))
  }
}

export const cacheControl = (ttl: '5m' | '1h' | null): JsonObject => ({
  type: 'ephemeral',
  ...(ttl !== null && { ttl }),
})

function textBlock({ text, citations = [] }: NeutralText): JsonObject {
  const own = citations.filter(isOwnCitation).map(({ original }) => original)
  return { type: 'text', text, ...(own.length > 0 && { citations: own }) }
}

export const isOwnCitation = ({ original: { type } }: NeutralCitation): boolean =>
  typeof type === 'string' && type.endsWith('_location')

function callBlock({ id, name, arguments: text, at }: NeutralToolCall): JsonObject {
  const input = text.trim() === '' ? {} : parseExactObject(text)
  if (input === null) throw unsupported(at, 'the arguments of a tool call must be a JSON object')
  return { type: 'tool_use', id: plainCallId(id), name, input }
}

function thoughtBlocks({ text, signature, redacted, language }: NeutralThought): JsonObject[] {
  if (language !== 'messages') return []
  if (redacted !== null) return [{ type: 'redacted_thinking', data: redacted }]
  return signature === null ? [] : [{ type: 'thinking', thinking: text, signature }]
}

function mediaBlock(media: NeutralMedia): JsonObject {
  const { kind, detail, at } = media
  if (detail !== undefined && detail.value !== 'auto') {
    throw unsupported(detail.at, 'this provider always looks at images in one way')
  }
  if (kind === 'image') return { type: 'image', source: imageSource(media) }
  if (kind === 'audio') throw unsupported(at, 'this provider does not listen to audio')
  const { title, citations } = media
  return {
    type: 'document',
    source: documentSource(media),
    ...(title !== undefined && { title }),
    ...(citations !== undefined && { citations: { enabled: citations.value } }),
  }
}

function imageSource({ source, mediaType, at }: NeutralMedia): JsonObject {
  if ('url' in source) return { type: 'url', url: source.url }
  if ('base64' in source && mediaType !== null) return { type: 'base64', media_type: mediaType, data: source.base64 }
  throw unsupported(at, 'send the image as bytes with their media type, or its address: files belong to one provider')
}

function documentSource({ source, mediaType, at }: NeutralMedia): JsonObject {
  if ('url' in source) return { type: 'url', url: source.url }
  if ('text' in source) return { type: 'text', media_type: 'text/plain', data: source.text }
  if ('base64' in source && mediaType === 'application/pdf') {
    return { type: 'base64', media_type: mediaType, data: source.base64 }
  }
  if ('base64' in source && mediaType === 'text/plain') {
    return { type: 'text', media_type: mediaType, data: Buffer.from(source.base64, 'base64').toString() }
  }
  throw unsupported(at, 'send the document as PDF, as plain text, or its address: files belong to one provider')
}
