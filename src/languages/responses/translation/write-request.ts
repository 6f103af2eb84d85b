/**
 * Writes a neutral request as a responses request. The provider keeps nothing (`store: false`); so that thoughts can
 * come back with a later turn they are asked for encrypted, where the request asks for reasoning or brings some back:
 * models that do not reason refuse the wish.
 */

import type {
  NeutralCitation,
  NeutralMedia,
  NeutralPart,
  NeutralRequest,
  NeutralText,
  NeutralThought,
  NeutralTool,
  NeutralToolResult,
  NeutralTurn,
} from '../../neutral.ts'
import type { JsonObject } from '../../reading/json-value.ts'
import { dataUrl } from '../../translation/data-url.ts'
import { leaveOut } from '../../translation/lenience.ts'
import { effortOf, errorText, fileName, schemaWords, writeHints } from '../../translation/openai-shared.ts'
import { settingWriter } from '../../translation/settings.ts'
import { unsupported } from '../../translation/translation-errors.ts'
import type { WriteOptions } from '../../translation-language.ts'
import { responsesMembers } from '../members.ts'

export function writeResponsesRequest(request: NeutralRequest, { lenience }: WriteOptions = {}): JsonObject {
  const [only, ...more] = request.instructions
  const begin = more.length > 0 ? [message('developer', request.instructions)] : []
  const body: JsonObject = {
    model: request.model,
    ...(more.length === 0 && only !== undefined && { instructions: only.text }),
    input: [...begin, ...request.turns.flatMap(itemsOf)],
    ...settingsOf(request.sampling, lenience),
    ...toolMembers(request),
    store: false,
  }
  const text = textMember(request)
  if (text !== null) body.text = text
  Object.assign(body, reasoningMembers(request))
  if (request.endUser !== null) body.user = request.endUser.value
  for (const [name, { value, at }] of request.extras) {
    if (name === 'verbosity') continue
    if (name !== 'service_tier') throw unsupported(at, 'the responses language has nothing like it')
    body.service_tier = value
  }
  Object.assign(body, writeHints(request.hints))
  if (request.stream) body.stream = true
  return body
}

const settingsOf = settingWriter(responsesMembers, ({ at }, setting, lenience) => {
  if (setting === 'topK') return leaveOut(lenience, at, 'the responses language has nothing like it')
  throw unsupported(at, 'the responses language has nothing like it')
})

function toolMembers({ tools, toolChoice: choice, parallelTools }: NeutralRequest): JsonObject {
  const members: JsonObject = {}
  if (tools.length > 0) members.tools = tools.map(toolOf)
  if (choice !== null) {
    members.tool_choice =
      typeof choice.value === 'string' ? choice.value : { type: 'function', name: choice.value.name }
  }
  if (parallelTools !== null) members.parallel_tool_calls = parallelTools.value
  return members
}

/** Left out, `strict` would be taken for true here, unlike anywhere else. */
const toolOf = ({ name, description, parameters, strict }: NeutralTool): JsonObject => ({
  type: 'function',
  name,
  ...(description !== null && { description }),
  parameters,
  strict: strict ?? false,
})

function textMember({ output, extras }: NeutralRequest): JsonObject | null {
  const verbosity = extras.get('verbosity')
  if (output === null && verbosity === undefined) return null
  return {
    ...(output !== null && { format: formatOf(output.value) }),
    ...(verbosity !== undefined && { verbosity: verbosity.value }),
  }
}

function formatOf(output: NonNullable<NeutralRequest['output']>['value']): JsonObject {
  if (output.form === 'text') return { type: 'text' }
  return output.form === 'json' ? { type: 'json_object' } : { type: 'json_schema', ...schemaWords(output) }
}

function reasoningMembers({ reasoning, turns }: NeutralRequest): JsonObject {
  const value = reasoning?.value
  const effort = value === undefined ? null : effortOf(value)
  const wished = {
    ...(effort !== null && { effort }),
    ...(value?.visible === true && { summary: 'auto' }),
  }
  const brought = turns.some(({ parts }) => parts.some((part) => part.kind === 'thought' && isOwn(part)))
  const asked = Object.keys(wished).length > 0
  return {
    ...(asked && { reasoning: wished }),
    ...((brought || (asked && effort !== 'none')) && { include: ['reasoning.encrypted_content'] }),
  }
}

/**
 * What this provider can read again: another's thoughts say nothing to it, and it takes none that are not encrypted.
 */
const isOwn = ({ language, signature, redacted }: NeutralThought): boolean =>
  (signature ?? redacted) !== null && (language === null || language === 'responses')

const message = (role: string, parts: readonly NeutralPart[]): JsonObject => ({
  type: 'message',
  role,
  content: parts.map(inputPart),
})

function itemsOf(turn: NeutralTurn): JsonObject[] {
  if (turn.name !== undefined) throw unsupported(turn.name.at, 'messages have no name in the responses language')
  if (turn.role === 'tool') return turn.parts.map(resultItem)
  if (turn.role === 'user') return [message('user', turn.parts)]
  return turn.role === 'system' ? [message('developer', turn.parts)] : assistantItems(turn.parts)
}

function assistantItems(parts: readonly NeutralPart[]): JsonObject[] {
  const items: JsonObject[] = []
  let content: JsonObject[] | null = null
  for (const part of parts) {
    const spoken = spokenPart(part)
    if (spoken === null) {
      content = null
      items.push(...assistantItem(part))
      continue
    }
    if (content === null) {
      content = []
      items.push({ type: 'message', role: 'assistant', content })
    }
    content.push(spoken)
  }
  return items
}

function spokenPart(part: NeutralPart): JsonObject | null {
  if (part.kind === 'refusal') return { type: 'refusal', refusal: part.text }
  if (part.kind !== 'text') return null
  return { type: 'output_text', text: part.text, annotations: addressesOf(part) }
}

/** The language's own form where the citation came in it. */
const addressesOf = ({ citations = [], text }: NeutralText): JsonObject[] =>
  citations.flatMap((citation) => (citation.url === null ? [] : [addressOf(citation, citation.url, text.length)]))

function addressOf({ original, title }: NeutralCitation, url: string, length: number): JsonObject {
  if (original.type === 'url_citation' && original.url !== undefined) return { ...original }
  return { type: 'url_citation', url, title: title ?? '', start_index: 0, end_index: length }
}

function assistantItem(part: NeutralPart): JsonObject[] {
  if (part.kind === 'tool_call') {
    return [{ type: 'function_call', call_id: part.id, name: part.name, arguments: part.arguments }]
  }
  if (part.kind !== 'thought') throw unsupported(part.at, "cannot stand in an assistant's turn")
  if (!isOwn(part)) return []
  const summary = part.text === '' ? [] : [{ type: 'summary_text', text: part.text }]
  return [{ type: 'reasoning', summary, encrypted_content: part.signature ?? part.redacted }]
}

function resultItem(part: NeutralPart): JsonObject {
  if (part.kind !== 'tool_result') throw unsupported(part.at, 'only results of tools can stand here')
  return { type: 'function_call_output', call_id: part.callId, output: outputOf(part) }
}

function outputOf({ parts, isError }: NeutralToolResult): unknown {
  const [first, ...more] = parts
  if (first === undefined) return errorText('', isError)
  if (more.length === 0 && first.kind === 'text') return errorText(first.text, isError)
  const written = parts.map(inputPart)
  return isError ? [{ type: 'input_text', text: errorText('', true) }, ...written] : written
}

function inputPart(part: NeutralPart): JsonObject {
  if (part.kind === 'text') return { type: 'input_text', text: part.text }
  if (part.kind === 'image') return imageOf(part)
  if (part.kind === 'document') return documentOf(part)
  throw unsupported(part.at, 'cannot stand in a message of the responses language')
}

function imageOf({ source, mediaType, detail, at }: NeutralMedia): JsonObject {
  const image = { type: 'input_image', detail: detail?.value ?? 'auto' }
  if ('url' in source) return { ...image, image_url: source.url }
  if ('fileId' in source) return { ...image, file_id: source.fileId }
  if (!('base64' in source)) throw unsupported(at, 'images are bytes, an address or a file id')
  return { ...image, image_url: dataUrl({ mediaType: mediaType ?? 'image/png', base64: source.base64 }) }
}

function documentOf({ source, mediaType, title, citations }: NeutralMedia): JsonObject {
  if (citations?.value === true) throw unsupported(citations.at, 'the responses language cannot ask for citations')
  const named = title === undefined ? {} : { filename: title }
  if ('url' in source) return { type: 'input_file', file_url: source.url, ...named }
  if ('fileId' in source) return { type: 'input_file', file_id: source.fileId, ...named }
  const isText = 'text' in source
  const type = isText ? 'text/plain' : (mediaType ?? 'application/pdf')
  const base64 = isText ? Buffer.from(source.text).toString('base64') : source.base64
  return { type: 'input_file', filename: fileName(title, type), file_data: dataUrl({ mediaType: type, base64 }) }
}
