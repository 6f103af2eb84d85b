/**
 * How a person gives a program a session or a token without giving it a password (handbook/people.md): the program
 * opens a page in the browser with a challenge, the person approves, and the program gets a code and proves with the
 * verifier that it is the one that asked (PKCE, RFC 7636; the flow for native programs, RFC 8252).
 *
 * A code lives 60 s, works once, and is bound to the program, the redirect, the challenge and the person. Every fault
 * has the same answer. A reused code was seen by somebody else: what it gave ends (RFC 6749 section 4.1.2).
 */
import { and, eq, getTableColumns, gt, inArray, isNull, lt, sql } from 'drizzle-orm'
import { z } from 'zod'
import { Failure } from '../../failure.ts'
import type { Permission } from '../../identity/permissions.ts'
import { permissionsOf } from '../../identity/permissions.ts'
import { hashSecret, makeSecret, secretKind } from '../../identity/secret.ts'
import { sameText } from '../../lib/text/same-text.ts'
import type { Database } from '../../store/open.ts'
import { guard, hasRow, insert, query, remove, statement, subquery, update } from '../../store/query.ts'
import { programCodes, userSessions, users } from '../../store/schema/ledger/people.ts'
import type { Statement } from '../../store/statement.ts'
import { tokenName } from '../../tokens/token-body.ts'
import type { UserRole } from '../people/user-resource.ts'

/** The redirect of a program that cannot listen: the code is shown and typed. */
export const outOfBand = 'urn:ietf:wg:oauth:2.0:oob'

const codeLifetimeMilliseconds = 60_000
/** How long a used code is kept, to notice its second use. */
const codeMemoryMilliseconds = 7 * 24 * 3600_000

/** The permission a person needs to hand out a token. */
export const tokenPermission: Permission = 'tokens:write'

// Loopback only, as written: other spellings of the same address are refused (RFC 8252 section 7.3, with the port).
const loopbackRedirect =
  /^http:\/\/(?:127\.0\.0\.1|localhost|\[::1\]):[1-9]\d{0,4}(?:\/[\w\-.~!$&'()*+,;=:@%/]*)?(?:\?[\w\-.~!$&'()*+,;=:@%/?]*)?$/

function isRedirect(text: string): boolean {
  if (text === outOfBand) return true
  if (!loopbackRedirect.test(text) || !URL.canParse(text)) return false
  const { searchParams, username, password } = new URL(text)
  const taken = ['code', 'state', 'error'].some((name) => searchParams.has(name))
  return username === '' && password === '' && !taken
}

const clientId = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._ -]{0,63}$/, 'A program is named by 1 to 64 plain characters')
const redirectUri = z
  .string()
  .max(500)
  .refine(isRedirect, `Use http://127.0.0.1:PORT/…, http://localhost:PORT/…, http://[::1]:PORT/… or ${outOfBand}`)

/** The query of the page `{console_url}/authorize-program`. */
export const programQuery = z.strictObject({
  client_id: clientId,
  redirect_uri: redirectUri,
  // RFC 7636 section 4.2: BASE64URL(SHA256(verifier)) is 43 characters.
  code_challenge: z.string().regex(/^[A-Za-z0-9_-]{43}$/, 'Send BASE64URL(SHA256(code_verifier)), without padding'),
  code_challenge_method: z.literal('S256'),
  state: z.string().max(1000).optional(),
  token_name: tokenName.optional(),
})
export type ProgramRequest = z.infer<typeof programQuery>

/** What a program presents for its code. */
export const codeBody = {
  code: z.string().max(200),
  // RFC 7636 section 4.1
  code_verifier: z.string().regex(/^[A-Za-z0-9\-._~]{43,128}$/, 'A code verifier has 43 to 128 unreserved characters'),
  client_id: z.string().max(64),
  redirect_uri: z.string().max(500),
}
export interface PresentedCode {
  code: string
  code_verifier: string
  client_id: string
  redirect_uri: string
}

/** Makes a code for what this person approved; it exists once its statements have run. */
export function makeCode(options: {
  request: ProgramRequest
  userId: string
  /** That of the approving session: what the program gets ends with it. */
  identityId: string | null
  now: number
  randomBytes(size: number): Uint8Array
}): { code: string; statements: Statement[] } {
  const { request, userId, identityId, now, randomBytes } = options
  const code = makeSecret('oauthCode', randomBytes)
  const { client_id, redirect_uri, code_challenge, token_name = null } = request
  return {
    code,
    statements: [
      statement(remove(programCodes).where(lt(programCodes.expiresAt, now - codeMemoryMilliseconds))),
      statement(
        insert(programCodes).values({
          hash: hashSecret(code),
          userId,
          clientId: client_id,
          redirectUri: redirect_uri,
          codeChallenge: code_challenge,
          tokenName: token_name,
          identityId,
          expiresAt: now + codeLifetimeMilliseconds,
        }),
      ),
    ],
  }
}

/** The approver of a valid code and what they approved. */
export interface Approval {
  codeHash: string
  userId: string
  role: UserRole
  clientId: string
  identityId: string | null
  /** The name the person saw on the page; null where the program asked for no token there. */
  tokenName: string | null
}

/** What a reused code had given. */
export interface Given {
  codeHash: string
  userId: string
  kind: 'session' | 'token'
  id: string | null
}

/**
 * Checks a code without using it up. Returns the approval, or what a used code had given. Throws `invalid_code` for
 * everything else.
 */
export async function examineCode(
  ledger: Database,
  presented: PresentedCode,
  now: number,
): Promise<{ approval: Approval } | { given: Given }> {
  const codeHash = hashSecret(presented.code)
  const row = secretKind(presented.code) === 'oauthCode' ? await readCode(ledger, codeHash) : undefined
  if (row === undefined) throw invalidCode()
  if (row.usedAt !== null) {
    return { given: { codeHash, userId: row.userId, kind: row.issuedKind ?? 'session', id: row.issuedId } }
  }
  const fits = [
    sameText(challengeOf(presented.code_verifier), row.codeChallenge),
    sameText(presented.client_id, row.clientId),
    sameText(presented.redirect_uri, row.redirectUri),
    now < row.expiresAt,
    row.status === 'active',
  ]
  if (fits.includes(false)) throw invalidCode()
  const { userId, role, clientId, identityId, tokenName } = row
  return { approval: { codeHash, userId, role, clientId, identityId, tokenName } }
}

export const invalidCode = (): Failure => new Failure('invalid_code', { param: 'code' })

async function readCode(ledger: Database, hash: string) {
  return await query(ledger)
    .select({ ...getTableColumns(programCodes), role: users.role, status: users.status })
    .from(programCodes)
    .innerJoin(users, eq(users.id, programCodes.userId))
    .where(eq(programCodes.hash, hash))
    .get()
}

/** BASE64URL-ENCODE(SHA256(ASCII(code_verifier))), RFC 7636 section 4.6. */
export const challengeOf = (verifier: string): string =>
  new Bun.CryptoHasher('sha256').update(verifier).digest('base64url')

/** Uses a code up for a session or a token; the transaction fails where it has been used meanwhile. */
export const useCode = (
  codeHash: string,
  gives: { kind: 'session' | 'token'; id: string | null },
  now: number,
): Statement[] => {
  const code = eq(programCodes.hash, codeHash)
  const given = { usedAt: now, issuedKind: gives.kind, issuedId: gives.id }
  return [
    guard(hasRow(programCodes, and(code, isNull(programCodes.usedAt), gt(programCodes.expiresAt, now)))),
    statement(update(programCodes).set(given).where(code)),
  ]
}

/** Notes which token a used code gave. False where the code was presented again meanwhile: the token must go. */
export async function noteGivenToken(ledger: Database, codeHash: string, tokenId: string): Promise<boolean> {
  const notReplayed = and(eq(programCodes.hash, codeHash), isNull(programCodes.replayedAt))
  const noted = await ledger.writeAndRead([
    statement(
      update(programCodes).set({ issuedId: tokenId }).where(notReplayed).returning({ hash: programCodes.hash }),
    ),
  ])
  return noted.length > 0
}

/** Notes that a used code came again, and ends the session it gave, if it gave one. */
export const noteReplay = ({ codeHash, userId }: Given, now: number): Statement[] => {
  const code = eq(programCodes.hash, codeHash)
  const given = subquery
    .select({ id: programCodes.issuedId })
    .from(programCodes)
    .where(and(code, eq(programCodes.issuedKind, 'session')))
  return [
    statement(
      update(programCodes)
        .set({ replayedAt: sql`coalesce(${programCodes.replayedAt}, ${now})` })
        .where(code),
    ),
    statement(remove(userSessions).where(and(eq(userSessions.userId, userId), inArray(userSessions.id, given)))),
  ]
}

/** Which token a used code gave, read after `noteReplay`, when it can no longer change. */
export async function givenTokenId(ledger: Database, codeHash: string): Promise<string | null> {
  const ofToken = and(eq(programCodes.hash, codeHash), eq(programCodes.issuedKind, 'token'))
  const row = await query(ledger).select().from(programCodes).where(ofToken).get()
  return row?.issuedId ?? null
}

/** Whether somebody of this role may hand out a token. */
export const mayGiveToken = (role: UserRole): boolean => permissionsOf([role]).has(tokenPermission)
