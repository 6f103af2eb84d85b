/** Reads the content of an input message, or the output of a call: one text, or parts of it. */

import { annotationsIn } from '../../chat/translation/annotations.ts'
import { addressed, fileContent } from '../../chat/translation/read-parts.ts'
import type { FieldPath, NeutralMedia, NeutralRefusal, NeutralText } from '../../neutral.ts'
import { isGiven, type JsonObject, textOf } from '../../reading/json-value.ts'
import { arrayAt, objectAt, onlyMembers, statedString, stringAt } from '../../translation/field-readers.ts'
import { unsupported } from '../../translation/translation-errors.ts'

type Part = NeutralText | NeutralMedia | NeutralRefusal

export function inputParts(content: unknown, at: FieldPath): Part[] {
  if (typeof content === 'string') return [{ kind: 'text', text: content, at }]
  return arrayAt(content, at).map((part, index) => partOf(objectAt(part, `${at}.${index}`), `${at}.${index}`))
}

const partMembers: ReadonlyMap<unknown, ReadonlySet<string>> = new Map([
  ['input_text', new Set(['type', 'text'])],
  ['output_text', new Set(['type', 'text', 'annotations', 'logprobs'])],
  ['refusal', new Set(['type', 'refusal'])],
  ['input_image', new Set(['type', 'image_url', 'file_id', 'detail'])],
  ['input_file', new Set(['type', 'file_data', 'file_id', 'file_url', 'filename'])],
])

function partOf(part: JsonObject, at: FieldPath): Part {
  const known = partMembers.get(part.type)
  if (known === undefined) throw unsupported(`${at}.type`, 'is a part that other providers do not have')
  onlyMembers(part, at, known)
  if (part.type === 'input_image') return imageOf(part, at)
  if (part.type === 'input_file') return fileOf(part, at)
  if (part.type === 'refusal') return { kind: 'refusal', text: stringAt(part.refusal, `${at}.refusal`), at }
  const citations = annotationsIn(part.annotations)
  return {
    kind: 'text',
    text: stringAt(part.text, `${at}.text`),
    ...(citations.length > 0 && { citations }),
    at,
  }
}

function imageOf(part: JsonObject, at: FieldPath): NeutralMedia {
  const detail = statedString(part.detail, `${at}.detail`)
  const looked = detail === null ? {} : { detail }
  const id = textOf(part.file_id)
  if (id !== null) return { kind: 'image', mediaType: null, source: { fileId: id }, ...looked, at }
  return { kind: 'image', ...addressed(stringAt(part.image_url, `${at}.image_url`), `${at}.image_url`), ...looked, at }
}

function fileOf(part: JsonObject, at: FieldPath): NeutralMedia {
  if (!isGiven(part.file_url)) return { kind: 'document', ...fileContent(part, at), at }
  const title = textOf(part.filename)
  const source = { url: stringAt(part.file_url, `${at}.file_url`) }
  return { kind: 'document', mediaType: null, source, ...(title !== null && { title }), at }
}
