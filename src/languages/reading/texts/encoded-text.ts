/**
 * Text that a body holds in base64: files of requests (`data:` URLs, blocks with a media type, a bare `file_data`)
 * and MCP's content. It counts as text if its media type says so. If the media type is missing or only says "bytes",
 * it is text if it is valid UTF-8. Other media are not read, PDF among them.
 */
import { isUtf8 } from 'node:buffer'
import type { JsonObject } from '../json-value.ts'

const textual = /^\s*(?:text\/|[^;,]+\+(?:json|xml|yaml)\b|application\/(?:x-)?(?:json|xml|javascript|yaml)\b)/i
const otherwise = /^\s*(?:(?:image|audio|video|font|model)\/|application\/pdf\b)/i

export const isTextual = (mediaType: string): boolean => textual.test(mediaType)
export const textOfBase64 = (base64: string): string => Buffer.from(base64, 'base64').toString()
export const base64OfText = (text: string): string => Buffer.from(text).toString('base64')

/** Null if the bytes are not text. */
function readText(mediaType: string, base64: string): string | null {
  if (isTextual(mediaType)) return textOfBase64(base64)
  if (otherwise.test(mediaType)) return null
  const bytes = Buffer.from(base64, 'base64')
  return isUtf8(bytes) && !bytes.includes(0) ? bytes.toString() : null
}

/** Members that hold a file, or its address, which may contain the bytes. */
const addresses: ReadonlySet<string> = new Set(['file_data', 'file_url', 'url', 'image_url', 'uri'])

/** The part of a base64 `data:` URL before its bytes, with the comma; null if it is not one (RFC 2397). */
function beginningOf(url: string): string | null {
  if (!/^data:/i.test(url)) return null
  const beginning = url.slice(0, url.indexOf(',') + 1)
  return /;base64,$/i.test(beginning) ? beginning : null
}

/** The text of the file that a member holds; null if it holds none. */
export function fileText(holder: JsonObject, key: string, value: string): string | null {
  if (key === 'data') {
    const { type, media_type: mediaType, mimeType } = holder
    if (typeof mimeType === 'string') return readText(mimeType, value)
    return type === 'base64' && typeof mediaType === 'string' ? readText(mediaType, value) : null
  }
  if (!addresses.has(key)) return null
  const beginning = beginningOf(value)
  if (beginning !== null) return readText(beginning.slice('data:'.length), value.slice(beginning.length))
  return key === 'file_data' && !isPdf(holder) ? readText('', value) : null
}

const isPdf = ({ filename }: JsonObject): boolean => typeof filename === 'string' && /\.pdf$/i.test(filename)

/** The member's new value after the file's text was replaced: its prefix stays. */
export function withFileText(value: unknown, text: string): string {
  return (beginningOf(typeof value === 'string' ? value : '') ?? '') + base64OfText(text)
}
