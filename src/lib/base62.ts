const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** Fills `length` base62 characters without bias: bytes of 248 and above are drawn again (248 = 4 × 62). */
export function randomBase62(length: number, randomBytes: (size: number) => Uint8Array): string {
  let text = ''
  while (text.length < length) {
    for (const byte of randomBytes(length - text.length)) {
      if (byte < 248) text += alphabet[byte % 62]
    }
  }
  return text
}

/** Writes an unsigned integer in base62, padded on the left with zeros to `length`. */
export function encodeBase62(value: number, length: number): string {
  let text = ''
  for (let rest = value; text.length < length; rest = Math.floor(rest / 62)) text = alphabet.charAt(rest % 62) + text
  return text
}
