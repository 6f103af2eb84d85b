/**
 * Gets access tokens for an MCP server by client credentials (RFC 6749 section 4.4) with the resource they are for (RFC
 * 8707). All sessions of a gateway share one; it is renewed shortly before it expires or when the server refuses it.
 */
import { z } from 'zod'
import { Failure } from '../../failure.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Fetch } from '../../providers/provider.ts'
import { boundedText } from '../servers/bounded-text.ts'
import type { ServerCredentials } from './server-credentials.ts'

export type OAuthClient = NonNullable<ServerCredentials['oauth']>

const answerBytes = 64 * 1024
const answerMilliseconds = 15_000
const shortlyMilliseconds = 30_000
/** RFC 6749 section 5.1 recommends `expires_in`; without it a token is renewed after this time. */
const defaultSeconds = 300

const tokenSchema = z.looseObject({
  access_token: z.string().regex(/^[\x21-\x7e]{1,8192}$/),
  token_type: z.string().regex(/^bearer$/i),
  expires_in: z.coerce.number().min(0).optional(),
})

export class ClientCredentials {
  readonly #client: OAuthClient
  readonly #fetch: Fetch
  readonly #clock: Clock
  #token: { text: string; until: number } | null = null
  #asking: Promise<string> | null = null

  constructor(client: OAuthClient, { fetch, clock }: { fetch: Fetch; clock: Clock }) {
    this.#client = client
    this.#fetch = fetch
    this.#clock = clock
  }

  /** A token that should be valid, never the `refused` one. Rejects with a Failure. */
  async token(refused: string | null = null): Promise<string> {
    const known = this.#token
    if (known !== null && known.text !== refused && this.#clock.monotonic() < known.until) return known.text
    this.#asking ??= this.#ask().finally(() => {
      this.#asking = null
    })
    return await this.#asking
  }

  async #ask(): Promise<string> {
    const { token_url, client_id, client_secret, scope, resource } = this.#client
    const fields = { grant_type: 'client_credentials', ...(scope && { scope }), ...(resource && { resource }) }
    const signal = AbortSignal.timeout(answerMilliseconds)
    try {
      const answer = await this.#fetch(token_url, {
        method: 'POST',
        headers: {
          accept: 'application/json',
          authorization: `Basic ${btoa(`${formEncoded(client_id)}:${formEncoded(client_secret)}`)}`,
          'content-type': 'application/x-www-form-urlencoded',
        },
        body: new URLSearchParams(fields).toString(),
        redirect: 'manual',
        signal,
      })
      const text = await boundedText(answer, answerBytes)
      if (!answer.ok) throw new Error(`The token endpoint answered ${answer.status}`)
      const { access_token: token, expires_in: seconds } = tokenSchema.parse(JSON.parse(text))
      const until = this.#clock.monotonic() + 1000 * (seconds ?? defaultSeconds) - shortlyMilliseconds
      this.#token = { text: token, until }
      return token
    } catch (error) {
      // The endpoint's answer may hold anything, so it is not repeated.
      throw new Failure('mcp.server_unreachable', {
        message: 'No access token for the MCP server could be had',
        cause: error,
      })
    }
  }
}

/** RFC 6749 section 2.3.1: both parts are form-encoded before they are joined. */
const formEncoded = (text: string): string => new URLSearchParams({ t: text }).toString().slice(2)
