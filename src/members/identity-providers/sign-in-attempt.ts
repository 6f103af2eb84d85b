/** What a browser carries while its person signs in at a provider (sessions/sealed-attempt.ts). */
import { z } from 'zod'
import { sealedAttempts } from '../sessions/sealed-attempt.ts'

/** A browser keeps cookies of 4096 bytes, and sealing makes of 3 bytes 4. */
const longestReturn = 2000

/**
 * Neither `//host` nor a backslash, which browsers take for a slash; and printable ASCII, as addresses are, so that the
 * length in characters is the length in bytes.
 */
const isPath = (text: string): boolean =>
  /^\/[\x21-\x7e]*$/.test(text) && !text.startsWith('//') && !text.includes('\\')

/** Where the console goes on after a sign-in: an address below its own, with its query. */
export const returnPath = z.string().max(longestReturn).refine(isPath, 'Write a path of the console: /tokens')

export const signInAttempts = sealedAttempts({
  cookie: 'gatehouse_sign_in',
  what: 'sign-in',
  asked: z.object({
    providerId: z.string(),
    returnTo: z.string(),
    /** The person to whom the identity is to be linked; null: the person to whom it belongs signs in. */
    linkTo: z.string().nullable(),
  }),
})
export type Attempt = ReturnType<typeof signInAttempts.of>
