/**
 * Text that people write into records and that others read later, in lists, events and terminals: it holds no control
 * characters, a name nothing that turns the order of what stands around it, and neither holds a secret of ours.
 */
import { z } from 'zod'
import { holdsSecret } from './secret.ts'

const secretMessage = 'This holds a secret of this installation: leave it out, and rotate the token it belongs to'

/** For `.refine`. */
export const noSecret = [(text: string) => !holdsSecret(text), secretMessage] as const

/** What no eye can see, the blank of Braille (U+2800) included, but for what joins letters and gives emoji their form. */
const hidden = /\u2800|(?!\u200C|\u200D|\uFE0E|\uFE0F)\p{Default_Ignorable_Code_Point}/u
const shown = /[\p{L}\p{N}\p{P}\p{S}]/u

/** Unicode's Bidi_Control: they turn the order of the text around them. */
const bidiControls = [0x61c, 0x200e, 0x200f, 0x202a, 0x202b, 0x202c, 0x202d, 0x202e, 0x2066, 0x2067, 0x2068, 0x2069]
/**
 * The API's description shows this pattern. Go and Python know neither that property nor each other's escapes of code
 * points, so the characters themselves stand in it.
 */
const ordinary = new RegExp(`^[^\\x00-\\x1f\\x7f-\\x9f${String.fromCodePoint(...bidiControls)}]*$`, 'u')
const controlMessage = 'A name has no control characters'

/** Trimmed and on one line. */
export const nameText = (longest: number) =>
  z
    .string()
    .trim()
    .min(1)
    .max(longest)
    .regex(ordinary, controlMessage)
    .refine((text) => text.isWellFormed(), controlMessage)
    .refine((text) => !hidden.test(text) && shown.test(text), 'A name can be seen: it has no invisible characters')
    .refine(...noSecret)

/** Trimmed; it may have lines. */
export const noteText = (longest: number) =>
  z
    .string()
    .trim()
    .max(longest)
    .refine(...noSecret)

const plain = /^[^\p{Cc}\p{Cs}]*$/u

/** Words by their keys. What is wrong with them is said of all together, for a key may be what must not be repeated. */
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
