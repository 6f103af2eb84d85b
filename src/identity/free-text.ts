/**
 * Free text in records, which others read later in lists, events and terminals. It holds no control characters and no
 * Gatehouse secret; a name also holds nothing that changes the text direction around it.
 */
import { z } from 'zod'
import { holdsSecret } from './secret.ts'

const secretMessage = 'This holds a secret of this installation: remove it, and rotate its token'

/** For `.refine`. */
export const noSecret = [(text: string) => !holdsSecret(text), secretMessage] as const

/** Invisible characters, including the Braille blank (U+2800), except those that join letters or form emoji. */
const hidden = /\u2800|(?!\u200C|\u200D|\uFE0E|\uFE0F)\p{Default_Ignorable_Code_Point}/u
const shown = /[\p{L}\p{N}\p{P}\p{S}]/u

/** Unicode's Bidi_Control characters, which change the direction of the text around them. */
const bidiControls = [0x61c, 0x200e, 0x200f, 0x202a, 0x202b, 0x202c, 0x202d, 0x202e, 0x2066, 0x2067, 0x2068, 0x2069]
/**
 * The API description shows this pattern. Go and Python know neither that property nor each other's escapes, so it
 * holds the characters themselves.
 */
const ordinary = new RegExp(`^[^\\x00-\\x1f\\x7f-\\x9f${String.fromCodePoint(...bidiControls)}]*$`, 'u')
const controlMessage = 'A name must not hold control characters'

/** Trimmed and on one line. */
export const nameText = (longest: number) =>
  z
    .string()
    .trim()
    .min(1)
    .max(longest)
    .regex(ordinary, controlMessage)
    .refine((text) => text.isWellFormed(), controlMessage)
    .refine((text) => !hidden.test(text) && shown.test(text), 'A name must not hold invisible characters')
    .refine(...noSecret)

/** Trimmed; may have several lines. */
export const noteText = (longest: number) =>
  z
    .string()
    .trim()
    .max(longest)
    .refine(...noSecret)

const plain = /^[^\p{Cc}\p{Cs}]*$/u

/** Labels by key. A fault is reported for all together, because a key may be a secret that must not be repeated. */
export const labels = z
  .record(z.string(), z.string())
  .refine((all) => Object.keys(all).length <= 16, 'At most 16 keys')
  .refine((all) => Object.keys(all).every((key) => key.length >= 1 && key.length <= 64), 'A key has 1 to 64 characters')
  .refine((all) => Object.values(all).every((value) => value.length <= 512), 'A value has at most 512 characters')
  .refine(
    (all) =>
      Object.entries(all)
        .flat()
        .every((text) => plain.test(text)),
    'Control characters are not allowed',
  )
  .refine((all) => !Object.entries(all).flat().some(holdsSecret), secretMessage)
