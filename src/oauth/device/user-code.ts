/**
 * The code that a person reads on one device and types on another (RFC 8628 section 6.1): 8 consonants of 20, so no
 * word, no digit that looks like a letter, and 34.5 bits. With five guesses and then at most four an hour (`codeRule`),
 * an account needs about 10,000 years to find one of 100 codes that wait, and a code waits 10 minutes.
 */
import { hashSecret } from '../../identity/secret.ts'
import { accountRule, type ThrottleRule } from '../../members/people/throttle.ts'

const letters = 'BCDFGHJKLMNPQRSTVWXZ'
const length = 8
/** The largest multiple of the number of letters in a byte: what is above would favour the first letters. */
const fair = 256 - (256 % letters.length)

/** How many codes an account may try. */
export const codeRule: ThrottleRule = accountRule

export const codeKey = (userId: string): string => `device:${userId}`

/** `WDJB-MJHT`. `randomBytes` must be cryptographically strong. */
export function makeUserCode(randomBytes: (size: number) => Uint8Array): string {
  let code = ''
  while (code.length < length) {
    for (const byte of randomBytes(length)) {
      if (byte < fair && code.length < length) code += letters[byte % letters.length]
    }
  }
  return written(code)
}

const written = (code: string): string => `${code.slice(0, length / 2)}-${code.slice(length / 2)}`

/**
 * A code as somebody typed it: small letters, other dashes and blanks are the same code. Null where it cannot be one.
 */
export function readUserCode(typed: string): string | null {
  const code = typed.toUpperCase().replaceAll(/[\s\p{Dash_Punctuation}]/gu, '')
  return code.length === length && [...code].every((letter) => letters.includes(letter)) ? written(code) : null
}

export const hashUserCode = (code: string): string => hashSecret(code)
