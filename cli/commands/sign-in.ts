/**
 * How `auth login` gets a session (handbook/people.md; the flow for native programs, RFC 8252, with PKCE, RFC 7636):
 * the person opens a page of the control plane, approves there, and a code comes back, to a listener on loopback or by
 * hand. The verifier never leaves this process but for the exchange.
 */
import { z } from 'zod'
import { Failure } from '../../src/failure.ts'
import type { Api } from '../command/api.ts'

export const clientId = 'gatehouse-cli'
const outOfBand = 'urn:ietf:wg:oauth:2.0:oob'

/** How long a person may take. */
const patienceMilliseconds = 10 * 60_000

export const sessionSchema = z.object({
  session_token: z.string(),
  session: z.object({ id: z.string(), expires_at: z.string() }),
  user: z.looseObject({ id: z.string(), email: z.string(), name: z.string(), role: z.string() }),
})
export type GivenSession = z.infer<typeof sessionSchema>

interface Approval {
  consoleUrl: string
  api: Api
  randomBytes(size: number): Uint8Array
  /** Told of the page to open. */
  show(url: string): void
}

const base64url = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64url')

function begin({ consoleUrl, randomBytes }: Approval, redirectUri: string) {
  const verifier = base64url(randomBytes(32))
  const state = base64url(randomBytes(16))
  const query = new URLSearchParams({
    client_id: clientId,
    redirect_uri: redirectUri,
    code_challenge: new Bun.CryptoHasher('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
    state,
  })
  return { verifier, state, url: `${consoleUrl}/authorize-program?${query}` }
}

const exchange = (api: Api, code: string, verifier: string, redirectUri: string): Promise<GivenSession> =>
  api.json(
    {
      method: 'POST',
      path: '/v1/auth/session/exchange-code',
      body: { code, code_verifier: verifier, client_id: clientId, redirect_uri: redirectUri },
    },
    sessionSchema,
  )

/** Through a listener on this host, which accepts one answer and closes. Throws `access_denied` if the person refused. */
export async function signInByListener(approval: Approval): Promise<GivenSession> {
  const answer = Promise.withResolvers<string>()
  // Awaited only after the page was shown; a refusal that comes earlier must not end the process as unhandled.
  answer.promise.catch(() => undefined)
  let expected = ''
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: (request) => hear(request, expected, answer),
  })
  const impatience = setTimeout(() => {
    answer.reject(new Failure('access_denied', { message: 'Nobody approved within ten minutes: start again' }))
  }, patienceMilliseconds)
  try {
    const redirectUri = `http://127.0.0.1:${server.port}/callback`
    const { verifier, state, url } = begin(approval, redirectUri)
    expected = state
    approval.show(url)
    return await exchange(approval.api, await answer.promise, verifier, redirectUri)
  } finally {
    clearTimeout(impatience)
    await server.stop()
  }
}

/** Takes the one answer with our state; other requests to the port are refused. */
function hear(request: Request, state: string, answer: PromiseWithResolvers<string>): Response {
  const { pathname, searchParams } = new URL(request.url)
  const [code, error] = [searchParams.get('code'), searchParams.get('error')]
  const isOurs = request.method === 'GET' && pathname === '/callback' && searchParams.get('state') === state
  if (!isOurs || (code === null && error === null)) return new Response('There is nothing here\n', { status: 404 })
  const headers = { 'content-type': 'text/plain; charset=utf-8', connection: 'close', 'referrer-policy': 'no-referrer' }
  if (code === null) {
    answer.reject(new Failure('access_denied', { message: 'The sign-in was denied' }))
    return new Response('Denied. You can close this page.\n', { headers })
  }
  answer.resolve(code)
  return new Response('Done. You can close this page and go back to the terminal.\n', { headers })
}

/** Where no browser reaches this host: the page shows a code, which is typed here. */
export async function signInByCode(approval: Approval, readCode: () => Promise<string>): Promise<GivenSession> {
  const { verifier, url } = begin(approval, outOfBand)
  approval.show(url)
  return await exchange(approval.api, (await readCode()).trim(), verifier, outOfBand)
}
