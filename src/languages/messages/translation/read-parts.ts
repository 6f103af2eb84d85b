/**
 * Content blocks of a caller's messages request as parts of the neutral form. Blocks that only Anthropic itself runs
 * or keeps (its own tools and their results, files, search results) have no place and are refused by name.
 */

import type {
  CallSignature,
  FieldPath,
  NeutralCitation,
  NeutralMedia,
  NeutralPart,
  NeutralText,
  NeutralToolCall,
  NeutralToolResult,
} from '../../neutral.ts'
import { isGiven, isObject, type JsonObject, objectsOf, textOf } from '../../reading/json-value.ts'
import { cacheOf } from '../../translation/cache-marker.ts'
import { arrayAt, objectAt, onlyMembers, stringAt } from '../../translation/field-readers.ts'
import { broughtOpaque, type MarkedSignature, readMarkedSignature } from '../../translation/signature.ts'
import { unsupported } from '../../translation/translation-errors.ts'

/** The parts of a `content`, which is a string or blocks. */
export function partsOf(content: unknown, at: FieldPath): NeutralPart[] {
  if (typeof content === 'string') return [{ kind: 'text', text: content, at }]
  const blocks = arrayAt(content, at)
  const signatures = callSignatures(blocks)
  return blocks.flatMap((given, index): NeutralPart[] => {
    const block = objectAt(given, `${at}.${index}`)
    if (callSignature(block) !== null) return []
    const part = partOf(block, `${at}.${index}`)
    if (part.kind !== 'tool_call') return [part]
    const signature = signatures.get(part.id)
    return [signature === undefined ? part : { ...part, signature }]
  })
}

/** A `system`, or another member that holds only text. */
export function textsOf(content: unknown, at: FieldPath): NeutralText[] {
  return partsOf(content, at).map((part) => {
    if (part.kind !== 'text') throw unsupported(part.at, 'only text can stand here')
    return part
  })
}

const blockMembers: ReadonlyMap<unknown, ReadonlySet<string>> = new Map([
  ['text', new Set(['type', 'text', 'citations', 'cache_control'])],
  ['image', new Set(['type', 'source', 'cache_control'])],
  ['document', new Set(['type', 'source', 'title', 'context', 'citations', 'cache_control'])],
  ['thinking', new Set(['type', 'thinking', 'signature'])],
  ['redacted_thinking', new Set(['type', 'data'])],
  ['tool_use', new Set(['type', 'id', 'name', 'input', 'caller', 'toolset_name', 'cache_control'])],
  ['tool_reference', new Set(['type', 'tool_name', 'cache_control'])],
  ['tool_result', new Set(['type', 'tool_use_id', 'content', 'is_error', 'cache_control'])],
])

function partOf(block: JsonObject, at: FieldPath): NeutralPart {
  const known = blockMembers.get(block.type)
  if (known === undefined) {
    throw unsupported(`${at}.type`, 'only its own provider can read a content block of this type')
  }
  onlyMembers(block, at, known)
  return { ...plainPart(block, at), ...cacheOf(block.cache_control, `${at}.cache_control`) }
}

function plainPart(block: JsonObject, at: FieldPath): NeutralPart {
  switch (block.type) {
    case 'text':
      return { kind: 'text', text: stringAt(block.text, `${at}.text`), ...citationsOf(block.citations), at }
    case 'image':
      return { kind: 'image', ...sourceOf(block.source, `${at}.source`), at }
    case 'document':
      return documentOf(block, at)
    case 'thinking':
      return {
        kind: 'thought',
        text: textOf(block.thinking) ?? '',
        ...broughtOpaque(textOf(block.signature), 'messages', false),
        at,
      }
    case 'redacted_thinking':
      return { kind: 'thought', text: '', ...broughtOpaque(textOf(block.data), 'messages', true), at }
    case 'tool_use':
      return callOf(block, at)
    // What a search for tools found. Every tool is loaded at another provider, so its name is all that it says there.
    case 'tool_reference':
      return { kind: 'text', text: stringAt(block.tool_name, `${at}.tool_name`), at }
    default:
      return resultOf(block, at)
  }
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
  const [data, url] = [textOf(said.data), textOf(said.url)]
  if (type === 'base64' && data !== null) return { mediaType, source: { base64: data } }
  if (type === 'url' && url !== null) return { mediaType, source: { url } }
  if (type === 'text' && data !== null) return { mediaType: mediaType ?? 'text/plain', source: { text: data } }
  const content = textOf(said.content)
  if (type === 'content' && content !== null) return { mediaType: 'text/plain', source: { text: content } }
  throw unsupported(at, 'send base64 data, a text or a url: no other provider has the files of this one')
}

function documentOf(block: JsonObject, at: FieldPath): NeutralMedia {
  if (isGiven(block.context)) throw unsupported(`${at}.context`, 'say what the document is about in a text beside it')
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

function callOf(block: JsonObject, at: FieldPath): NeutralToolCall {
  const [id, name] = [stringAt(block.id, `${at}.id`), stringAt(block.name, `${at}.name`)]
  if (isObject(block.caller) && block.caller.type !== 'direct') {
    throw unsupported(`${at}.caller`, 'only its own provider can read calls that its own tools made')
  }
  if (isGiven(block.toolset_name)) throw unsupported(`${at}.toolset_name`, 'only its own provider has toolsets')
  return { kind: 'tool_call', id, name, arguments: JSON.stringify(block.input ?? {}), at }
}

function resultOf(block: JsonObject, at: FieldPath): NeutralToolResult {
  const callId = stringAt(block.tool_use_id, `${at}.tool_use_id`)
  const parts = isGiven(block.content) ? partsOf(block.content, `${at}.content`) : []
  return {
    kind: 'tool_result',
    callId,
    name: null,
    parts: parts.map((part) => {
      if (part.kind === 'text' || part.kind === 'image' || part.kind === 'document') return part
      throw unsupported(part.at, 'a tool result holds text, images and documents')
    }),
    isError: block.is_error === true,
    at,
  }
}

/**
 * The signatures of calls by the calls' ids. A signature arrives in a thinking block that holds nothing else
 * (`languages/translation/signature.ts`), and is put back on its call.
 */
function callSignatures(blocks: readonly unknown[]): Map<string, CallSignature> {
  const signatures = new Map<string, CallSignature>()
  for (const block of blocks) {
    const marked = isObject(block) ? callSignature(block) : null
    if (marked?.callId) signatures.set(marked.callId, { text: marked.signature, language: marked.language })
  }
  return signatures
}

function callSignature({ type, thinking, signature }: JsonObject): MarkedSignature | null {
  if (type !== 'thinking' || thinking !== '' || typeof signature !== 'string') return null
  const marked = readMarkedSignature(signature)
  return marked?.callId ? marked : null
}
