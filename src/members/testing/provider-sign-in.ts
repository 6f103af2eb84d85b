/** What tests of sign-in at a provider share: a record of the provider, and the way there and back. */

import type { OpenIdProvider } from './openid-provider.ts'
import { type Browser, type TemporaryControlPlane, testPassword } from './temporary-control-plane.ts'

export interface CameBack {
  status: number
  /** The address of the console that the browser is sent to. */
  location: string
  /** Why nobody came in, or null. */
  refused: string | null
  /** The cookie of the new session, or null. */
  session: string | null
  cookies: string[]
}

/** Adds a record of a provider, as the administrator. */
export async function addProviderRecord(
  plane: TemporaryControlPlane,
  provider: OpenIdProvider,
  changes: Record<string, unknown> = {},
): Promise<string> {
  const body = {
    ...{ name: `at ${provider.issuer}`, issuer: provider.issuer, client_id: 'gatehouse' },
    ...{ client_secret: 'the secret of the client', default_role: 'member', ...changes },
  }
  const { status, json, text } = await plane.call('POST', '/v1/identity-providers', { body, token: plane.adminToken })
  if (status !== 201) throw new Error(`The provider was not added: ${text}`)
  return json.id
}

/** Begins a sign-in in a browser: where it is sent, and the cookie that it keeps. */
export async function beginAt(plane: TemporaryControlPlane, id: string, returnTo = '/', by?: Browser) {
  const begun = await plane.call('POST', `/v1/auth/identity-providers/${by === undefined ? 'begin' : 'link'}`, {
    body: {
      ...{ identity_provider_id: id, return_to: returnTo },
      ...(by === undefined ? {} : { current_password: testPassword }),
    },
    ...(by === undefined ? {} : { cookie: by.cookie, headers: plane.fromPage(by) }),
  })
  if (begun.status !== 200) throw new Error(`The sign-in did not begin: ${begun.text}`)
  const [cookie = ''] = begun.headers.getSetCookie().map((text) => text.split(';')[0] ?? '')
  return { url: String(begun.json.redirect_to), cookie }
}

/** Comes back to the callback, with the cookies of a browser. */
export async function comeBack(plane: TemporaryControlPlane, address: string, cookies: string[]): Promise<CameBack> {
  const { pathname, search } = new URL(address)
  const received = await plane.call('GET', pathname + search, {
    headers: { cookie: cookies.join('; '), 'sec-fetch-site': 'cross-site' },
  })
  const location = received.headers.get('location') ?? ''
  const set = received.headers.getSetCookie()
  const session = set.map((text) => /^gatehouse_session=(gths_[^;]+)/.exec(text)?.[1]).find(Boolean) ?? null
  const refused = URL.parse(location)?.searchParams.get('sign_in_refused') ?? null
  return { status: received.status, location, refused, session, cookies: set }
}

/** The whole way of a person whom the provider knows. */
export async function signInAt(plane: TemporaryControlPlane, provider: OpenIdProvider, id: string): Promise<CameBack> {
  const { url, cookie } = await beginAt(plane, id)
  return await comeBack(plane, provider.answerTo(url), [cookie])
}

/** Who is signed in by a session's cookie, or null. */
export async function whoIs(plane: TemporaryControlPlane, session: string | null) {
  if (session === null) return null
  const { status, json } = await plane.call('GET', '/v1/auth/session', { cookie: session })
  return status === 200 ? json.user : null
}
