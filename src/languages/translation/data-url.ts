/** `data:` URLs with bytes in base64 (RFC 2397), as the OpenAI languages carry images and files. */

export interface EncodedBytes {
  mediaType: string
  base64: string
}

/**
 * Null if it is not a `data:` URL in base64. Parameters of the media type are left out: providers know types without
 * them.
 */
export function parseDataUrl(url: string): EncodedBytes | null {
  const comma = url.indexOf(',')
  if (!/^data:/i.test(url) || comma < 0) return null
  const head = url.slice('data:'.length, comma)
  if (!/;base64$/i.test(head)) return null
  const [mediaType = ''] = head.split(';')
  return { mediaType: mediaType.trim().toLowerCase(), base64: url.slice(comma + 1) }
}

export const dataUrl = ({ mediaType, base64 }: EncodedBytes): string => `data:${mediaType};base64,${base64}`

export const isDataUrl = (url: string): boolean => /^data:/i.test(url)
