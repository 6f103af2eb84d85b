/**
 * A caller's contents as turns of the neutral form. Function responses are results, in a turn of their own. Calls need
 * no id in this language: one without gets an id from its place, and a response without belongs to the first call of
 * its name that has no response yet.
 */
import type {
  FieldPath,
  NeutralMedia,
  NeutralPart,
  NeutralText,
  NeutralToolCall,
  NeutralToolResult,
  NeutralTurn,
} from '../../neutral.ts'
import { isGiven, isObject, type JsonObject, textOf } from '../../reading/json-value.ts'
import { arrayAt, objectAt, onlyMembers, stringAt } from '../../translation/field-readers.ts'
import { broughtOpaque, readMarkedSignature } from '../../translation/signature.ts'
import { malformed, unsupported } from '../../translation/translation-errors.ts'
import { skipsCheck } from './write-contents.ts'

interface Call {
  id: string
  name: string
  answered: boolean
}

const contentMembers = new Set(['role', 'parts'])

export function turnsOf(contents: unknown): NeutralTurn[] {
  const calls: Call[] = []
  return arrayAt(contents, 'contents').flatMap((given, index) => {
    const at = `contents.${index}`
    const content = objectAt(given, at)
    onlyMembers(content, at, contentMembers)
    const { role = 'user' } = content
    if (role !== 'user' && role !== 'model' && role !== 'function') throw malformed(`${at}.role`, 'user or model')
    const parts = partsOf(content, at, calls)
    return role === 'model' ? [{ role: 'assistant' as const, parts, at }] : userTurns(parts, at)
  })
}

/** The texts of a system instruction. */
export function instructionsOf(given: unknown): NeutralText[] {
  const at = 'systemInstruction'
  if (!isGiven(given)) return []
  return partsOf(objectAt(given, at), at, []).map((part) => {
    if (part.kind !== 'text') throw unsupported(part.at, 'only text can stand here')
    return part
  })
}

function userTurns(parts: readonly NeutralPart[], at: FieldPath): NeutralTurn[] {
  const results = parts.filter(({ kind }) => kind === 'tool_result')
  const rest = parts.filter(({ kind }) => kind !== 'tool_result')
  const turns: NeutralTurn[] = []
  if (results.length > 0) turns.push({ role: 'tool', parts: results, at })
  if (rest.length > 0 || results.length === 0) turns.push({ role: 'user', parts: rest, at })
  return turns
}

function partsOf({ parts }: JsonObject, at: FieldPath, calls: Call[]): NeutralPart[] {
  if (!isGiven(parts)) return []
  const list = isObject(parts) ? [parts] : arrayAt(parts, `${at}.parts`)
  const read = list.map((part, index) => ({ part: objectAt(part, `${at}.parts.${index}`), at: `${at}.parts.${index}` }))
  return wholeThoughts(read).flatMap(({ part, at: inner }) => readPart(part, inner, calls))
}

interface PlacedPart {
  part: JsonObject
  at: FieldPath
}

/**
 * Clients keep a streamed thought in the pieces that came; its signature is on the last, and belongs to all of them.
 */
function wholeThoughts(parts: readonly PlacedPart[]): PlacedPart[] {
  const whole: PlacedPart[] = []
  for (const { part, at } of parts) {
    const last = whole.at(-1)
    if (last !== undefined && isThought(part) && isThought(last.part) && !isGiven(last.part.thoughtSignature))
      last.part = { ...part, text: `${textOf(last.part.text) ?? ''}${textOf(part.text) ?? ''}` }
    else whole.push({ part, at })
  }
  return whole
}

const isThought = ({ text, thought }: JsonObject): boolean =>
  thought === true && (!isGiven(text) || typeof text === 'string')

const partMembers = new Set([
  ...['text', 'thought', 'thoughtSignature', 'inlineData', 'fileData', 'functionCall', 'functionResponse'],
])

function readPart(part: JsonObject, at: FieldPath, calls: Call[]): NeutralPart[] {
  onlyMembers(part, at, partMembers)
  const signature = textOf(part.thoughtSignature)
  if (isGiven(part.functionCall)) return [callOf(part.functionCall, signature, `${at}.functionCall`, calls)]
  if (isGiven(part.functionResponse)) return [resultOf(part.functionResponse, `${at}.functionResponse`, calls)]
  if (isGiven(part.inlineData)) return [bytesOf(part.inlineData, `${at}.inlineData`)]
  if (isGiven(part.fileData)) return [fileOf(part.fileData, `${at}.fileData`)]
  const text = isGiven(part.text) ? stringAt(part.text, `${at}.text`) : ''
  const opaque = broughtOpaque(signature, 'gemini', false)
  if (part.thought === true) return [{ kind: 'thought', text, ...opaque, at }]
  const spoken: NeutralPart[] = text === '' ? [] : [{ kind: 'text', text, at }]
  return signature === null ? spoken : [...spoken, { kind: 'thought', text: '', ...opaque, at }]
}

const callMembers = new Set(['id', 'name', 'args'])

function callOf(given: unknown, signature: string | null, at: FieldPath, calls: Call[]): NeutralToolCall {
  const call = objectAt(given, at)
  onlyMembers(call, at, callMembers)
  const name = stringAt(call.name, `${at}.name`)
  const id = textOf(call.id) || `call_${calls.length + 1}`
  calls.push({ id, name, answered: false })
  const args = isGiven(call.args) ? objectAt(call.args, `${at}.args`) : {}
  return { kind: 'tool_call', id, name, arguments: JSON.stringify(args), ...signatureOf(signature), at }
}

function signatureOf(text: string | null): Pick<NeutralToolCall, 'signature'> {
  if (text === null || text === '' || text === skipsCheck) return {}
  const marked = readMarkedSignature(text)
  if (marked === null) return { signature: { text, language: 'gemini' } }
  return { signature: { text: marked.signature, language: marked.language } }
}

// How a response is delivered concerns only live sessions.
const responseMembers = new Set(['id', 'name', 'response', 'parts', 'willContinue', 'scheduling'])

function resultOf(given: unknown, at: FieldPath, calls: Call[]): NeutralToolResult {
  const result = objectAt(given, at)
  onlyMembers(result, at, responseMembers)
  const name = stringAt(result.name, `${at}.name`)
  const id = textOf(result.id)
  const call =
    calls.find((known) => known.id === id) ?? calls.find((known) => known.name === name && !known.answered) ?? null
  if (call !== null) call.answered = true
  const response = isGiven(result.response) ? objectAt(result.response, `${at}.response`) : {}
  const media = isGiven(result.parts) ? arrayAt(result.parts, `${at}.parts`) : []
  return {
    kind: 'tool_result',
    callId: call?.id ?? (id || `call_${name}`),
    name,
    parts: [
      { kind: 'text', text: saidIn(response), at },
      ...media.map((part, index) => {
        const inner = `${at}.parts.${index}`
        return bytesOf(objectAt(part, inner).inlineData, `${inner}.inlineData`)
      }),
    ],
    isError: Object.keys(response).length === 1 && isGiven(response.error),
    at,
  }
}

/** A response that holds one text is that text; any other is its JSON. */
function saidIn(response: JsonObject): string {
  const [name, ...others] = Object.keys(response)
  const value = name === 'output' || name === 'result' || name === 'error' ? response[name] : undefined
  if (others.length > 0 || value === undefined) return JSON.stringify(response)
  return typeof value === 'string' ? value : JSON.stringify(value)
}

const bytesMembers = new Set(['mimeType', 'data', 'displayName'])

function bytesOf(given: unknown, at: FieldPath): NeutralMedia {
  const bytes = objectAt(given, at)
  onlyMembers(bytes, at, bytesMembers)
  const mediaType = stringAt(bytes.mimeType, `${at}.mimeType`)
  const title = textOf(bytes.displayName)
  const base64 = stringAt(bytes.data, `${at}.data`)
  const kind = kindOf(mediaType, at)
  const plain = kind === 'document' && mediaType.startsWith('text/')
  const source = plain ? { text: Buffer.from(base64, 'base64').toString() } : { base64 }
  return { kind, mediaType, source, ...(title !== null && { title }), at }
}

const fileMembers = new Set(['mimeType', 'fileUri', 'displayName'])
/** Files that Google itself keeps, or alone can read. */
const ownFile = /^(?:gs:|https:\/\/(?:generativelanguage\.googleapis\.com|(?:www\.)?youtube\.com|youtu\.be)\/)/

function fileOf(given: unknown, at: FieldPath): NeutralMedia {
  const file = objectAt(given, at)
  onlyMembers(file, at, fileMembers)
  const url = stringAt(file.fileUri, `${at}.fileUri`)
  if (ownFile.test(url)) throw unsupported(`${at}.fileUri`, 'no other provider has the files of this one')
  const mediaType = textOf(file.mimeType)
  return { kind: kindOf(mediaType ?? 'image/*', at), mediaType, source: { url }, at }
}

function kindOf(mediaType: string, at: FieldPath): NeutralMedia['kind'] {
  if (mediaType.startsWith('image/')) return 'image'
  if (mediaType.startsWith('audio/')) return 'audio'
  if (mediaType.startsWith('video/')) throw unsupported(`${at}.mimeType`, 'other providers do not look at video')
  return 'document'
}
