/**
 * How a gateway gets the access token of a caller's own account at an MCP server: POST
 * /v1/gateway-runtime/person-tokens. It shows the credential that the caller showed, so it gets nothing of persons who
 * do not call it, although it knows the hashes of all credentials. It gets no refresh token, and keeps what it gets in
 * memory only.
 */
import { z } from 'zod'
import type { Failure } from '../../failure.ts'

const sha256 = z.string().regex(/^[0-9a-f]{64}$/)

export const personTokenRequestSchema = z.strictObject({
  server_id: z.uuid(),
  server_url: z.string().max(2048).describe('Where the gateway sends the token: it gets none for another address'),
  credential: z.string().max(512).describe('What the caller showed'),
  refused: sha256.nullable().describe('SHA-256 of an access token that the server has refused'),
})
export type PersonTokenRequest = z.infer<typeof personTokenRequestSchema>

export const personTokenReplySchema = z.discriminatedUnion('status', [
  z.object({
    status: z.literal('connected'),
    user_id: z.string(),
    connect_url: z.string().describe('Where the person connects again, such as for more scope'),
    access_token: z.string(),
    expires_in: z.number().nullable().describe('Seconds; null where the server does not say'),
  }),
  z.object({ status: z.literal('not_connected'), connect_url: z.string().describe('Where the person connects') }),
  z.object({ status: z.literal('no_person') }),
  z.object({ status: z.literal('unavailable') }).describe('The authorization server gives no token now'),
])
export type PersonTokenReply = z.infer<typeof personTokenReplySchema>

/** Gives access tokens for an MCP server. */
export interface AccessTokens {
  /** A token that should be valid, never the `refused` one. Rejects with a Failure. */
  token(refused?: string | null): Promise<string>
  /** Calls `stop` once no token is given any more, for a stream that stays open. Returns what ends the watch. */
  watch?(stop: () => void): () => void
  /** What an answer is, by its status and challenge, where it concerns one caller only; null for any other. */
  refusal?(status: number, challenge: string | null): Failure | null
}
