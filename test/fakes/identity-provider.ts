/**
 * A real OpenID provider, `oidc-provider` of npm, on a port of this host: people sign in on its page by their name. Its
 * groups are what a test says they are at the moment. Scripts, fonts and pictures it has none, so that a page of a test
 * asks nobody else.
 */
import { generateKeyPairSync } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import Provider from 'oidc-provider'

export interface FakePerson {
  email: string
  email_verified: boolean
  name: string
  groups: string[]
}

export interface IdentityProvider extends AsyncDisposable {
  issuer: string
  /** By the name that is typed on its page; a person who is taken away no longer exists there. */
  people: Map<string, FakePerson>
}

export const client = { id: 'gatehouse', secret: 'the secret of the client at the provider' }

const loginPage = (uid: string) => `<!doctype html><html lang="en"><title>The provider</title>
<h1>Sign in at the provider</h1>
<form method="post" action="/interaction/${uid}">
<label>Your name <input name="login" required></label><button type="submit">Sign in here</button>
</form></html>`

const logoutPage = (form: string) => `<!doctype html><html lang="en"><title>The provider</title>
<h1>Sign out at the provider?</h1>${form}
<button type="submit" form="op.logoutForm" name="logout" value="yes">Yes, sign me out</button></html>`

/** Starts it for one client, which comes back to `redirectUri`. */
export async function startIdentityProvider(
  port: number,
  redirectUri: string,
  home: string,
): Promise<IdentityProvider> {
  const issuer = `http://127.0.0.1:${port}`
  const people = new Map<string, FakePerson>()
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: client.id,
        client_secret: client.secret,
        redirect_uris: [redirectUri],
        post_logout_redirect_uris: [home],
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
      },
    ],
    jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), kid: 'first', use: 'sig', alg: 'RS256' }] },
    claims: { email: ['email', 'email_verified'], profile: ['name'], groups: ['groups'] },
    scopes: ['openid', 'email', 'profile', 'groups', 'offline_access'],
    cookies: { keys: ['a key of the cookies of this provider'] },
    features: {
      devInteractions: { enabled: false },
      rpInitiatedLogout: {
        logoutSource(context: { body: string }, form: string) {
          context.body = logoutPage(form)
        },
      },
    },
    pkce: { required: () => true },
    interactions: { url: (_context: unknown, { uid }: { uid: string }) => `/interaction/${uid}` },
    issueRefreshToken: () => true,
    findAccount(_context: unknown, sub: string) {
      const person = people.get(sub)
      return person === undefined ? undefined : { accountId: sub, claims: () => ({ sub, ...person }) }
    },
  })

  /** Its two questions: who are you, which the page asks, and may the client know, which everybody answers with yes. */
  async function interact(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { uid, prompt, params, session } = await provider.interactionDetails(request, response)
    if (prompt.name === 'consent') {
      const grant = new provider.Grant({ accountId: session?.accountId ?? '', clientId: params.client_id })
      for (const scope of prompt.details.missingOIDCScope ?? []) grant.addOIDCScope(scope)
      return await provider.interactionFinished(request, response, { consent: { grantId: await grant.save() } })
    }
    if (request.method !== 'POST') {
      response.setHeader('content-type', 'text/html; charset=utf-8')
      response.end(loginPage(uid))
      return
    }
    const parts: Uint8Array[] = []
    for await (const part of request) parts.push(part)
    const accountId = new URLSearchParams(Buffer.concat(parts).toString()).get('login') ?? ''
    await provider.interactionFinished(request, response, { login: { accountId } })
  }

  const answer = provider.callback()
  const server = createServer((request, response) => {
    if (!request.url?.startsWith('/interaction/')) return answer(request, response)
    interact(request, response).catch((error: unknown) => {
      response.statusCode = 500
      response.end(String(error))
    })
  })
  await new Promise<void>((listening) => {
    server.listen(port, '127.0.0.1', listening)
  })
  return {
    issuer,
    people,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((closed) => {
        server.close(closed)
      })
    },
  }
}
