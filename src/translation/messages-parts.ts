/**
 * Content blocks of the messages language as parts of the neutral form: those that a caller sends. What only Anthropic
 * itself runs or keeps (its own tools and their results, files, search results) has no place and is refused by name.
 */
import { isGiven, isObject, type JsonObject, objectsOf, textOf } from '../dialects/json-value.ts'
import type {
  FieldPath,
  NeutralCitation,
  NeutralMedia,
  NeutralPart,
  NeutralText,
  NeutralToolCall,
  NeutralToolResult,
  Stated,
} from './neutral.ts'
import { type MarkedSignature, readMarkedSignature } from './signature.ts'
import { unsupported } from './unsupported.ts'

/** The parts of a `content`, which is a string or blocks. */
export function partsOf(content: unknown, at: FieldPath): NeutralPart[] {
  if (typeof content === 'string') return [{ kind: 'text', text: content, at }]
  if (!Array.isArray(content)) throw unsupported(at, 'Send a text or an array of content blocks')
  const signatures = callSignatures(content)
  return content.flatMap((block: unknown, index): NeutralPart[] => {
    if (!isObject(block)) throw unsupported(`${at}.${index}`, 'A content block must be an object')
    if (callSignature(block) !== null) return []
    const part = partOf(block, `${at}.${index}`)
    if (part.kind !== 'tool_call') return [part]
    const signature = signatures.get(part.id)
    return [signature === undefined ? part : { ...part, signature }]
  })
}

/** A `system`, or what else holds nothing but text. */
export function textsOf(content: unknown, at: FieldPath): NeutralText[] {
  return partsOf(content, at).map((part) => {
    if (part.kind !== 'text') throw unsupported(part.at, 'Only text can stand here')
    return part
  })
}

function partOf(block: JsonObject, at: FieldPath): NeutralPart {
  const cache = cacheOf(block.cache_control, `${at}.cache_control`)
  return { ...plainPart(block, at), ...(cache !== undefined && { cache }) }
}

function plainPart(block: JsonObject, at: FieldPath): NeutralPart {
  switch (block.type) {
    case 'text':
      return { kind: 'text', text: textOf(block.text) ?? '', ...citationsOf(block.citations), at }
    case 'image':
      return { kind: 'image', ...sourceOf(block.source, `${at}.source`), at }
    case 'document':
      return documentOf(block, at)
    case 'thinking':
      return thoughtOf(block, at)
    case 'redacted_thinking':
      return { kind: 'thought', text: '', signature: null, ...redactedOf(textOf(block.data) ?? ''), at }
    case 'tool_use':
      return callOf(block, at)
    case 'tool_result':
      return resultOf(block, at)
    default:
      throw unsupported(`${at}.type`, 'Only its own provider can read a content block of this type')
  }
}

/** A marker as `cache_control` says it; undefined where there is none. */
export function cacheOf(value: unknown, at: FieldPath): Stated<{ ttl: '5m' | '1h' | null }> | undefined {
  if (!isGiven(value)) return undefined
  const ttl = isObject(value) && value.type === 'ephemeral' ? (value.ttl ?? null) : undefined
  if (ttl === null || ttl === '5m' || ttl === '1h') return { value: { ttl }, at }
  throw unsupported(at, 'cache_control must be {"type": "ephemeral"}, with a ttl of "5m" or "1h" where it has one')
}

function citationsOf(value: unknown): { citations?: NeutralCitation[] } {
  const citations = objectsOf(value).map(citationOf)
  return citations.length === 0 ? {} : { citations }
}

export const citationOf = (citation: JsonObject): NeutralCitation => ({
  title: textOf(citation.title) ?? textOf(citation.document_title),
  url: textOf(citation.url) ?? textOf(citation.source),
  citedText: textOf(citation.cited_text),
  original: citation,
})

function sourceOf(source: unknown, at: FieldPath): Pick<NeutralMedia, 'mediaType' | 'source'> {
  const { type, ...said } = isObject(source) ? source : {}
  const mediaType = textOf(said.media_type)
  const [data, url, fileId] = [textOf(said.data), textOf(said.url), textOf(said.file_id)]
  if (type === 'base64' && data !== null) return { mediaType, source: { base64: data } }
  if (type === 'url' && url !== null) return { mediaType, source: { url } }
  if (type === 'file' && fileId !== null) return { mediaType, source: { fileId } }
  if (type === 'text' && data !== null) return { mediaType: mediaType ?? 'text/plain', source: { text: data } }
  const content = textOf(said.content)
  if (type === 'content' && content !== null) return { mediaType: 'text/plain', source: { text: content } }
  throw unsupported(at, 'Send base64 data, a text or a url')
}

function documentOf(block: JsonObject, at: FieldPath): NeutralMedia {
  if (isGiven(block.context)) throw unsupported(`${at}.context`, 'Say what the document is about in a text beside it')
  const title = textOf(block.title)
  const { citations } = block
  const cited = isObject(citations) ? { value: citations.enabled === true, at: `${at}.citations` } : undefined
  return {
    kind: 'document',
    ...sourceOf(block.source, `${at}.source`),
    ...(title !== null && { title }),
    ...(cited !== undefined && { citations: cited }),
    at,
  }
}

function thoughtOf({ thinking, signature }: JsonObject, at: FieldPath): NeutralPart {
  const signed = textOf(signature) ?? ''
  const text = textOf(thinking) ?? ''
  const none = { kind: 'thought', text, redacted: null, at } as const
  if (signed === '') return { ...none, signature: null, language: null }
  const marked = readMarkedSignature(signed)
  return marked === null
    ? { ...none, signature: signed, language: 'messages' }
    : { ...none, signature: marked.signature, language: marked.language }
}

function redactedOf(data: string) {
  const marked = readMarkedSignature(data)
  return marked === null
    ? { redacted: data, language: 'messages' as const }
    : { redacted: marked.signature, language: marked.language }
}

function callOf(block: JsonObject, at: FieldPath): NeutralToolCall {
  const [id, name] = [textOf(block.id), textOf(block.name)]
  if (id === null || name === null) throw unsupported(at, 'A tool call needs an id and a name')
  if (isObject(block.caller) && block.caller.type !== 'direct') {
    throw unsupported(`${at}.caller`, 'Only its own provider can read calls that its own tools made')
  }
  if (isGiven(block.toolset_name)) throw unsupported(`${at}.toolset_name`, 'Only its own provider has toolsets')
  return { kind: 'tool_call', id, name, arguments: JSON.stringify(block.input ?? {}), at }
}

function resultOf(block: JsonObject, at: FieldPath): NeutralToolResult {
  const callId = textOf(block.tool_use_id)
  if (callId === null) throw unsupported(`${at}.tool_use_id`, 'A tool result needs the id of its call')
  const parts = isGiven(block.content) ? partsOf(block.content, `${at}.content`) : []
  return {
    kind: 'tool_result',
    callId,
    name: null,
    parts: parts.map((part) => {
      if (part.kind === 'text' || part.kind === 'image' || part.kind === 'document') return part
      throw unsupported(part.at, 'A tool result holds text, images and documents')
    }),
    isError: block.is_error === true,
    at,
  }
}

/**
 * The signatures of calls by the calls' ids. One stands in a thinking block of its own, which holds nothing else
 * (`signature.ts`), and becomes the call's again.
 */
function callSignatures(blocks: readonly unknown[]): Map<string, string> {
  const signatures = new Map<string, string>()
  for (const block of blocks) {
    const marked = isObject(block) ? callSignature(block) : null
    if (marked?.callId) signatures.set(marked.callId, marked.signature)
  }
  return signatures
}

function callSignature({ type, thinking, signature }: JsonObject): MarkedSignature | null {
  if (type !== 'thinking' || thinking !== '' || typeof signature !== 'string') return null
  const marked = readMarkedSignature(signature)
  return marked?.callId ? marked : null
}
