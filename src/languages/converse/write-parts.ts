/**
 * The content of a conversation as blocks of Converse (AWS Bedrock Runtime API: ContentBlock and the blocks in it,
 * CachePointBlock, ImageFormat, DocumentFormat, AudioFormat).
 */

import { parseExactObject } from '../../lib/json/exact-json.ts'
import type {
  NeutralCitation,
  NeutralMedia,
  NeutralPart,
  NeutralText,
  NeutralThought,
  NeutralToolCall,
  NeutralToolResult,
} from '../neutral.ts'
import type { JsonObject } from '../reading/json-value.ts'
import { plainCallId } from '../translation/call-id.ts'
import { converseLocation } from '../translation/citation-locations.ts'
import { unsupported } from '../translation/translation-errors.ts'

/** A block, followed by its cache point if it carries a marker. */
export function withCachePoint(block: JsonObject, cache: NeutralPart['cache']): JsonObject[] {
  if (cache === undefined) return [block]
  const { ttl } = cache.value
  return [block, { cachePoint: { type: 'default', ...(ttl !== null && { ttl }) } }]
}

export const systemBlocks = (instructions: readonly NeutralText[]): JsonObject[] =>
  instructions.flatMap((part) => (part.text === '' ? [] : withCachePoint({ text: part.text }, part.cache)))

/** `names`: names that earlier documents of the request use; each document needs its own. */
export function contentBlocks(part: NeutralPart, names: Set<string>): JsonObject[] {
  const block = contentBlock(part, names)
  return block === null ? [] : withCachePoint(block, part.cache)
}

/** Null for an empty text, which Converse refuses, and for another provider's thoughts. */
function contentBlock(part: NeutralPart, names: Set<string>): JsonObject | null {
  switch (part.kind) {
    case 'text':
      return textBlock(part)
    case 'refusal':
      return part.text === '' ? null : { text: part.text }
    case 'image':
    case 'document':
    case 'audio':
      return mediaBlock(part, names)
    case 'tool_call':
      return toolUse(part)
    case 'tool_result':
      return toolResult(part, names)
    case 'thought':
      return reasoning(part)
  }
}

function textBlock({ text, citations = [] }: NeutralText): JsonObject | null {
  if (text === '') return null
  if (citations.length === 0) return { text }
  return { citationsContent: { content: [{ text }], citations: citations.map(citation) } }
}

function citation(given: NeutralCitation): JsonObject {
  const { title, citedText } = given
  const location = converseLocation(given)
  return {
    ...(title !== null && { title }),
    ...(citedText !== null && { sourceContent: [{ text: citedText }] }),
    ...(location !== null && { location }),
  }
}

function toolUse({ id, name, arguments: text, at }: NeutralToolCall): JsonObject {
  const input = text.trim() === '' ? {} : parseExactObject(text)
  if (input === null) throw unsupported(at, 'Converse takes arguments that are a JSON object')
  return { toolUse: { toolUseId: plainCallId(id), name, input } }
}

function toolResult({ callId, parts, isError }: NeutralToolResult, names: Set<string>): JsonObject {
  const content = parts.map((part) => contentBlock(part, names)).filter((block) => block !== null)
  return { toolResult: { toolUseId: plainCallId(callId), content, ...(isError && { status: 'error' }) } }
}

/** The languages whose signatures can be brought back: Anthropic's are valid at Anthropic and at Bedrock. */
const ownThoughts: ReadonlySet<unknown> = new Set(['converse', 'messages'])

function reasoning({ text, signature, redacted, language }: NeutralThought): JsonObject | null {
  if (language !== null && !ownThoughts.has(language)) return null
  if (redacted !== null) return { reasoningContent: { redactedContent: redacted } }
  return { reasoningContent: { reasoningText: { text, ...(signature !== null && { signature }) } } }
}

const formats = {
  image: new Map([
    ['image/png', 'png'],
    ['image/jpeg', 'jpeg'],
    ['image/jpg', 'jpeg'],
    ['image/gif', 'gif'],
    ['image/webp', 'webp'],
  ]),
  document: new Map([
    ['application/pdf', 'pdf'],
    ['text/csv', 'csv'],
    ['application/msword', 'doc'],
    ['application/vnd.openxmlformats-officedocument.wordprocessingml.document', 'docx'],
    ['application/vnd.ms-excel', 'xls'],
    ['application/vnd.openxmlformats-officedocument.spreadsheetml.sheet', 'xlsx'],
    ['text/html', 'html'],
    ['text/plain', 'txt'],
    ['text/markdown', 'md'],
  ]),
  audio: new Map([
    ['audio/mpeg', 'mp3'],
    ['audio/mp3', 'mp3'],
    ['audio/wav', 'wav'],
    ['audio/x-wav', 'wav'],
    ['audio/ogg', 'ogg'],
    ['audio/flac', 'flac'],
    ['audio/aac', 'aac'],
    ['audio/opus', 'opus'],
    ['audio/webm', 'webm'],
    ['audio/mp4', 'mp4'],
  ]),
} as const

function mediaBlock(part: NeutralMedia, names: Set<string>): JsonObject {
  if (part.detail !== undefined && part.detail.value !== 'auto') {
    throw unsupported(part.detail.at, 'Converse cannot be told how closely to look: leave it out')
  }
  const source = sourceOf(part)
  const format = formatOf(part)
  if (part.kind !== 'document') return { [part.kind]: { format, source } }
  return {
    document: {
      format,
      name: documentName(part.title, names),
      source,
      ...(part.citations?.value === true && { citations: { enabled: true } }),
    },
  }
}

function formatOf({ kind, mediaType, source, at }: NeutralMedia): string {
  const extension = 'url' in source ? source.url.slice(source.url.lastIndexOf('.') + 1).toLowerCase() : null
  const plain = 'text' in source && mediaType === null ? 'text/plain' : mediaType
  const format = formats[kind].get((plain ?? '').split(';')[0]?.trim().toLowerCase() ?? '')
  const found = format ?? [...formats[kind].values()].find((known) => known === extension)
  if (found === undefined) throw unsupported(at, `Converse takes ${[...new Set(formats[kind].values())].join(', ')}`)
  return found
}

/** Bytes are base64 in JSON; Converse fetches only addresses of S3. */
function sourceOf({ kind, source, at }: NeutralMedia): JsonObject {
  if ('base64' in source) return { bytes: source.base64 }
  if ('text' in source && kind === 'document') return { text: source.text }
  if ('url' in source && source.url.startsWith('s3://')) return { s3Location: { uri: source.url } }
  const cause =
    'fileId' in source ? 'a file belongs to the provider it was sent to' : 'Converse fetches no other address'
  throw unsupported(at, `${cause}: send the bytes, or an address that begins with s3://`)
}

/** Converse accepts letters, digits, single spaces, hyphens, parentheses and brackets, and each name once a request. */
function documentName(title: string | undefined, names: Set<string>): string {
  const plain = (title ?? 'document')
    .replace(/[^a-zA-Z0-9\s()[\]-]+/g, '-')
    .replace(/\s+/g, ' ')
    .trim()
    .slice(0, 190)
  const base = plain === '' ? 'document' : plain
  let name = base
  for (let count = 2; names.has(name); count++) name = `${base} ${count}`
  names.add(name)
  return name
}
