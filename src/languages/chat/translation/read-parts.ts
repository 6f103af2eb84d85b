/** Reads the content of a chat message: one text, or parts of text, images, audio, files and refusals. */

import type { FieldPath, NeutralMedia, NeutralRefusal, NeutralText } from '../../neutral.ts'
import { isObject, type JsonObject, textOf } from '../../reading/json-value.ts'
import { cacheOf } from '../../translation/cache-marker.ts'
import { isDataUrl, parseDataUrl } from '../../translation/data-url.ts'
import { arrayAt, objectAt, onlyMembers, statedString, stringAt } from '../../translation/field-readers.ts'
import { unsupported } from '../../translation/translation-errors.ts'

/** Content that is text alone. */
export function textsOf(content: unknown, at: FieldPath): NeutralText[] {
  return contentParts(content, at).map((part) => {
    if (part.kind !== 'text') throw unsupported(part.at, 'is no text, and other providers take nothing else there')
    return part
  })
}

/** Thoughts that stand among the parts of an assistant's content, as Mistral's reasoning models write them. */
export const isThinkingPart = (part: unknown): part is JsonObject => isObject(part) && part.type === 'thinking'

export function contentParts(content: unknown, at: FieldPath): (NeutralText | NeutralMedia | NeutralRefusal)[] {
  if (typeof content === 'string') return [{ kind: 'text', text: content, at }]
  return arrayAt(content, at).map((part, index) => partOf(objectAt(part, `${at}.${index}`), `${at}.${index}`))
}

const partMembers: ReadonlyMap<unknown, ReadonlySet<string>> = new Map([
  ['text', new Set(['type', 'text', 'cache_control'])],
  ['refusal', new Set(['type', 'refusal'])],
  ['image_url', new Set(['type', 'image_url', 'cache_control'])],
  ['input_audio', new Set(['type', 'input_audio', 'cache_control'])],
  ['file', new Set(['type', 'file', 'cache_control'])],
])

function partOf(part: JsonObject, at: FieldPath): NeutralText | NeutralMedia | NeutralRefusal {
  const known = partMembers.get(part.type)
  if (known === undefined) throw unsupported(`${at}.type`, 'is a part that other providers do not have')
  onlyMembers(part, at, known)
  const cache = cacheOf(part.cache_control, `${at}.cache_control`)
  if (part.type === 'text') return { kind: 'text', text: stringAt(part.text, `${at}.text`), at, ...cache }
  if (part.type === 'refusal') return { kind: 'refusal', text: stringAt(part.refusal, `${at}.refusal`), at }
  const media =
    part.type === 'image_url' ? imageOf(part, at) : part.type === 'file' ? fileOf(part, at) : audioOf(part, at)
  return { ...media, ...cache }
}

const imageMembers = new Set(['url', 'detail'])

function imageOf(part: JsonObject, at: FieldPath): NeutralMedia {
  const image = objectAt(part.image_url, `${at}.image_url`)
  onlyMembers(image, `${at}.image_url`, imageMembers)
  const detail = statedString(image.detail, `${at}.image_url.detail`)
  return {
    kind: 'image',
    ...addressed(stringAt(image.url, `${at}.image_url.url`), `${at}.image_url.url`),
    ...(detail !== null && { detail }),
    at,
  }
}

/** The data that an address contains, or the place it points to. */
export function addressed(url: string, at: FieldPath): Pick<NeutralMedia, 'mediaType' | 'source'> {
  const held = parseDataUrl(url)
  if (held !== null) return { mediaType: held.mediaType, source: { base64: held.base64 } }
  if (isDataUrl(url)) throw unsupported(at, 'is a data URL that is not in base64')
  return { mediaType: null, source: { url } }
}

const audioMembers = new Set(['data', 'format'])

function audioOf(part: JsonObject, at: FieldPath): NeutralMedia {
  const audio = objectAt(part.input_audio, `${at}.input_audio`)
  onlyMembers(audio, `${at}.input_audio`, audioMembers)
  const format = stringAt(audio.format, `${at}.input_audio.format`)
  const mediaType = format === 'mp3' ? 'audio/mpeg' : `audio/${format}`
  return { kind: 'audio', mediaType, source: { base64: stringAt(audio.data, `${at}.input_audio.data`) }, at }
}

const fileMembers = new Set(['file_data', 'file_id', 'filename'])

function fileOf(part: JsonObject, at: FieldPath): NeutralMedia {
  const file = objectAt(part.file, `${at}.file`)
  onlyMembers(file, `${at}.file`, fileMembers)
  return { kind: 'document', ...fileContent(file, `${at}.file`), at }
}

/** A file in the form of both OpenAI languages: by its id, or by its data as a data URL or in plain base64. */
export function fileContent(file: JsonObject, at: FieldPath): Pick<NeutralMedia, 'mediaType' | 'source' | 'title'> {
  const title = textOf(file.filename)
  const titled = title === null ? {} : { title }
  const id = textOf(file.file_id)
  if (id !== null) return { mediaType: null, source: { fileId: id }, ...titled }
  const data = stringAt(file.file_data, `${at}.file_data`)
  if (isDataUrl(data)) return { ...addressed(data, `${at}.file_data`), ...titled }
  return { mediaType: /\.pdf$/i.test(title ?? '') ? 'application/pdf' : null, source: { base64: data }, ...titled }
}
