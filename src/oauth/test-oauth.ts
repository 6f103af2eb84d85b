/** An OAuth server for tests: a control plane on real files, a signed-in person, a registered client. */
import { type Settings, settingsSchema } from '../config.ts'
import { silentLog } from '../lib/log.ts'
import { challengeOf } from '../members/program-code.ts'
import { temporaryControlPlane, testOrigin } from '../members/temporary-control-plane.ts'
import type { UserRole } from '../members/user.ts'
import { oauthRoutes } from './routes.ts'

export { testOrigin }
export const testGatewayUrl = 'http://127.0.0.1:7080'
export const testRedirect = 'https://app.example.com/callback'
export const testVerifier = 'v'.repeat(43)

export async function temporaryOAuth(settings: Partial<Settings> = {}) {
  const all = settingsSchema.parse(settings)
  const plane = await temporaryControlPlane(testOrigin, (dependencies) =>
    oauthRoutes({ ...dependencies, settings: all, gatewayUrl: () => testGatewayUrl, log: silentLog }),
  )
  const { call, adminToken } = plane

  async function register(fields: Readonly<Record<string, unknown>> = {}): Promise<string> {
    const body = {
      client_name: 'A notebook',
      redirect_uris: [testRedirect],
      scope: 'gateway:invoke events:read',
      ...fields,
    }
    const { status, json, text } = await call('POST', '/v1/oauth/clients', { token: adminToken, body })
    if (status !== 201) throw new Error(`The client was not registered: ${text}`)
    return json.client_id
  }

  async function person(email = 'ada@example.com', role: UserRole = 'member') {
    const id = await plane.addPerson(email, role)
    const browser = await plane.signInAs(email)
    const asPage = { cookie: browser.cookie, headers: plane.fromPage(browser) }
    return { id, browser, asPage }
  }

  /** The query of a good request. */
  const query = (clientId: string, fields: Readonly<Record<string, unknown>> = {}) => ({
    response_type: 'code',
    client_id: clientId,
    redirect_uri: testRedirect,
    scope: 'gateway:invoke',
    state: 'xyz',
    code_challenge: challengeOf(testVerifier),
    code_challenge_method: 'S256',
    ...fields,
  })

  return { ...plane, register, person, query }
}

export type TemporaryOAuth = Awaited<ReturnType<typeof temporaryOAuth>>
export type TestPerson = Awaited<ReturnType<TemporaryOAuth['person']>>
