/**
 * Passwords: what is accepted and how they are kept. Length is the rule that helps; composition rules are not used
 * (NIST SP 800-63B section 3.1.1.2). Texts are normalised (NFC) before hashing, so that the same characters typed on
 * another keyboard are the same password.
 */

/**
 * Argon2id at the OWASP Password Storage Cheat Sheet's minimum: 19 MiB, two passes, one worker (Bun's parallelism is 1).
 * More memory is more harm from a flood of sign-ins; the throttle bounds guessing online.
 */
const argon2id = { algorithm: 'argon2id', memoryCost: 19_456, timeCost: 2 } as const

export const passwordLength = { minimum: 12, maximum: 256 } as const

/** What is wrong with a new password, in words, or null. Length counts characters, not bytes. */
export function passwordFault(password: string, email: string): string | null {
  const length = [...password.normalize('NFC')].length
  if (length < passwordLength.minimum || length > passwordLength.maximum) {
    return `A password has ${passwordLength.minimum} to ${passwordLength.maximum} characters`
  }
  if (password.trim().toLowerCase() === email.toLowerCase()) return 'A password must not be the e-mail address'
  if (new Set(password).size < 4) return 'A password needs at least 4 different characters'
  return null
}

export const hashPassword = (password: string): Promise<string> =>
  Bun.password.hash(password.normalize('NFC'), argon2id)

/** A hash without a password. Verifying against it takes as long for people who have none. */
let nobodysHash: Promise<string> | undefined

/** Whether the password matches the hash. Takes as long, and is false, if there is no hash. */
export async function verifyPassword(password: string, hash: string | null): Promise<boolean> {
  // Awaited for everybody. Otherwise the first unknown person of a process would take twice as long.
  nobodysHash ??= hashPassword(crypto.randomUUID())
  const nobodys = await nobodysHash
  const against = hash ?? nobodys
  // An overlong text would only make the answer slower; no stored password is that long.
  const text = password.length > passwordLength.maximum * 4 ? '-' : password.normalize('NFC')
  return (await Bun.password.verify(text, against)) && hash !== null
}
