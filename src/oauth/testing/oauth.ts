/** An OAuth server for tests: a control plane on real files, signed-in people, registered clients, and the whole flow. */

import { type Settings, settingsSchema } from '../../config.ts'
import type { Event } from '../../events/event.ts'
import { recordedEvents } from '../../events/testing/recorded.ts'
import { silentLog } from '../../lib/log/log.ts'
import type { Fetch } from '../../members/identity-providers/bounded-fetch.ts'
import type { UserRole } from '../../members/people/user-resource.ts'
import { challengeOf } from '../../members/programs/program-code.ts'
import { temporaryControlPlane, testOrigin } from '../../members/testing/temporary-control-plane.ts'
import type { Resolve } from '../../policies/outside-target.ts'
import { clientDocuments } from '../clients/client-document.ts'
import type { OAuthDependencies } from '../dependencies.ts'
import { delegationsOf, settleOAuth } from '../follow-person.ts'
import { oauthRoutes } from '../routes.ts'

export const testGatewayUrl = 'http://127.0.0.1:7080'
export const testRedirect = 'https://app.example.com/callback'
export const testVerifier = 'v'.repeat(43)

type Fields = Readonly<Record<string, unknown>>

export interface Tokens {
  access_token: string
  refresh_token: string
  scope: string
  expires_in: number
}

/** Documents of applications, by their address. */
export interface Published {
  fetch?: Fetch
  resolve?: Resolve
}

export async function temporaryOAuth(settings: Partial<Settings> = {}, { fetch, resolve }: Published = {}) {
  const made: { dependencies?: OAuthDependencies } = {}
  const plane = await temporaryControlPlane(testOrigin, (members) => {
    const dependencies: OAuthDependencies = {
      ...members,
      settings: settingsSchema.parse(settings),
      gatewayUrl: () => testGatewayUrl,
      documents: clientDocuments({
        fetch: fetch ?? (() => Promise.reject(new Error('Nothing is fetched here'))),
        resolve: resolve ?? (async () => ['93.184.216.34']),
        clock: members.clock,
        hosts: settingsSchema.parse(settings).oauth_client_document_hosts,
      }),
      log: silentLog,
    }
    members.delegations = delegationsOf(dependencies)
    made.dependencies = dependencies
    return oauthRoutes(dependencies)
  })
  const { call, adminToken } = plane
  const { dependencies: server } = made
  if (server === undefined) throw new Error('The routes were not made')

  async function register(fields: Fields = {}): Promise<string> {
    const scope = 'gateway:invoke events:read tokens:read'
    const body = { client_name: 'A notebook', redirect_uris: [testRedirect], scope, ...fields }
    const { status, json, text } = await call('POST', '/v1/oauth/clients', { token: adminToken, body })
    if (status !== 201) throw new Error(`The client was not registered: ${text}`)
    return json.client_id
  }

  async function person(email = 'ada@example.com', role: UserRole = 'member') {
    const id = await plane.addPerson(email, role)
    const browser = await plane.signInAs(email)
    return { id, browser, asPage: { cookie: browser.cookie, headers: plane.fromPage(browser) } }
  }

  /** The query of a good request. */
  const query = (clientId: string, fields: Fields = {}) => ({
    response_type: 'code',
    client_id: clientId,
    redirect_uri: testRedirect,
    scope: 'gateway:invoke tokens:read',
    state: 'xyz',
    code_challenge: challengeOf(testVerifier),
    code_challenge_method: 'S256',
    ...fields,
  })

  /** What the page sends when the person agrees to what it shows. */
  async function agreement(who: TestPerson, asked: Fields): Promise<Fields> {
    const { json } = await call('POST', '/v1/oauth/authorize/preview', { ...who.asPage, body: asked })
    const scopes = json.scopes?.map(({ scope }: { scope: string }) => scope)
    return { ...asked, approve: true, scopes, user_id: json.user?.id }
  }

  /** A code that the person approved. */
  async function approve(clientId: string, who: TestPerson, fields: Fields = {}): Promise<string> {
    const body = await agreement(who, query(clientId, fields))
    const { json, text } = await call('POST', '/v1/oauth/authorize/decision', { ...who.asPage, body })
    const code = new URL(json.redirect_to).searchParams.get('code')
    if (code === null) throw new Error(`There is no code: ${text}`)
    return code
  }

  const token = (fields: Record<string, string>) => call('POST', '/v1/oauth/token', { form: fields })

  const codeRequest = (clientId: string, code: string) => ({
    grant_type: 'authorization_code',
    client_id: clientId,
    code,
    redirect_uri: testRedirect,
    code_verifier: testVerifier,
  })

  async function tokens(clientId: string, who: TestPerson, fields: Fields = {}): Promise<Tokens> {
    const { status, json, text } = await token(codeRequest(clientId, await approve(clientId, who, fields)))
    if (status !== 200) throw new Error(`There are no tokens: ${text}`)
    return json
  }

  const refresh = (clientId: string, refreshToken: string, fields: Record<string, string> = {}) =>
    token({ grant_type: 'refresh_token', client_id: clientId, refresh_token: refreshToken, ...fields })

  /** Whether the control plane takes an access token. */
  const works = async (accessToken: string): Promise<boolean> =>
    (await call('GET', '/v1/tokens', { token: accessToken })).status === 200

  /** What was recorded of a type, in order. */
  const eventsOf = (type: string): Promise<Event[]> => recordedEvents(plane.store.ledger, type)

  const settle = (): Promise<void> => settleOAuth(server)

  return {
    ...{ ...plane, server, register, person, query, agreement, approve },
    ...{ token, codeRequest, tokens, refresh, works, eventsOf, settle },
  }
}

export type TemporaryOAuth = Awaited<ReturnType<typeof temporaryOAuth>>
export interface TestPerson {
  id: string
  browser: { cookie: string; csrf: string }
  asPage: { cookie: string; headers: Record<string, string> }
}
