/** A control plane for tests: real files, the routes of people and tokens behind `mount`, no port. */
import type { AnyElysia } from 'elysia'
import { createAnswerStore } from '../../api/answer-store.ts'
import { testApplication } from '../../api/testing/application.ts'
import { newId } from '../../lib/ids.ts'
import { catalogRoutes } from '../../providers/routes.ts'
import { createAuthenticator } from '../../tokens/authenticate.ts'
import { tokenRoutes } from '../../tokens/routes.ts'
import { recordAccessRefusal } from '../access-refusal.ts'
import type { MemberDependencies } from '../dependencies.ts'
import { createRelyingParty } from '../identity-providers/relying-party.ts'
import { hashPassword } from '../people/password.ts'
import type { UserRole } from '../people/user-resource.ts'
import { memberRoutes } from '../routes.ts'
import { createSessionAuthenticator } from '../sessions/authenticate-session.ts'
import { ownOrigins } from '../sessions/session-cookie.ts'
import { type TemporaryInstallation, temporaryInstallation } from './installation.ts'

export const testOrigin = 'http://127.0.0.1:7070'
export const testPassword = 'correct horse battery staple'

/** What a test sends: JSON by `body`, a form by `form`, a session by `cookie`. */
export interface Sent {
  body?: unknown
  form?: Record<string, string>
  cookie?: string
  token?: string
  headers?: Record<string, string>
  address?: string
}

export interface Received {
  status: number
  headers: Headers
  text: string
  // biome-ignore lint/suspicious/noExplicitAny: a test looks at what it expects
  json: any
  /** The value of the session cookie, where one was set. */
  cookie: string | null
}

export interface Browser {
  cookie: string
  csrf: string
  userId: string
}

export async function temporaryControlPlane(
  baseUrl = testOrigin,
  moreRoutes: (dependencies: MemberDependencies) => AnyElysia[] = () => [],
) {
  const installation = await temporaryInstallation()
  const addresses = new WeakMap<Request, string>()
  const dependencies: MemberDependencies = {
    ...installation.deps,
    settings: { session_idle_seconds: 3600, session_lifetime_seconds: 24 * 3600 },
    baseUrl: () => baseUrl,
    consoleUrl: () => `${baseUrl}/console`,
    addressOf: (request) => addresses.get(request) ?? '192.0.2.1',
    delegations: { mark: () => [], follow: async () => undefined },
    relyingParty: createRelyingParty({ clock: installation.clock, fetch }),
  }
  const server = mountAll(installation, dependencies, baseUrl, moreRoutes(dependencies))

  async function call(method: string, path: string, sent: Sent = {}): Promise<Received> {
    const headers = new Headers(sent.headers)
    const { body, form } = sent
    if (form !== undefined) headers.set('content-type', 'application/x-www-form-urlencoded')
    else if (body !== undefined && !headers.has('content-type')) headers.set('content-type', 'application/json')
    if (sent.cookie !== undefined) headers.set('cookie', `gatehouse_session=${sent.cookie}`)
    if (sent.token !== undefined) headers.set('authorization', `Bearer ${sent.token}`)
    const content = form === undefined ? JSON.stringify(body) : new URLSearchParams(form).toString()
    const request = new Request(baseUrl + path, { method, headers, body: content ?? null })
    addresses.set(request, sent.address ?? '192.0.2.1')
    const response = await server.fetch(request)
    const text = await response.text()
    const cookie = /^gatehouse_session=([^;]+)/.exec(response.headers.get('set-cookie') ?? '')?.[1] ?? null
    const isJson = response.headers.get('content-type')?.startsWith('application/json') === true
    return { status: response.status, headers: response.headers, text, json: isJson ? JSON.parse(text) : null, cookie }
  }

  /** Adds a person who can sign in by `testPassword`. */
  async function addPerson(email: string, role: UserRole = 'member'): Promise<string> {
    const id = newId()
    testHash ??= hashPassword(testPassword)
    await installation.store.ledger.write([
      {
        sql: `insert into users (id, email, name, role, status, password_hash, created_at)
          values (?, ?, 'Somebody', ?, 'active', ?, 0)`,
        args: [id, email, role, await testHash],
      },
    ])
    return id
  }

  async function signInAs(email: string, password = testPassword): Promise<Browser> {
    const { status, json, cookie, text } = await call('POST', '/v1/auth/login', { body: { email, password } })
    if (status !== 200 || cookie === null) throw new Error(`Sign-in failed: ${text}`)
    return { cookie, csrf: json.csrf_token, userId: json.user.id }
  }

  /** The headers with which our own page writes. */
  const fromPage = ({ csrf }: Pick<Browser, 'csrf'>) => ({ 'x-csrf-token': csrf, 'sec-fetch-site': 'same-origin' })

  return {
    ...installation,
    dependencies,
    adminToken: installation.installation.adminToken ?? '',
    fetch: server.fetch,
    call,
    addPerson,
    signInAs,
    fromPage,
    remove: () => installation.store.remove(),
  }
}

export type TemporaryControlPlane = Awaited<ReturnType<typeof temporaryControlPlane>>

/** Hashing is slow by design: the tests share one. */
let testHash: Promise<string> | undefined

function mountAll(
  { deps, clock, options }: TemporaryInstallation,
  dependencies: MemberDependencies,
  baseUrl: string,
  moreRoutes: AnyElysia[],
) {
  const { state, ledger } = deps
  const origins = () => ownOrigins(dependencies.baseUrl(), dependencies.consoleUrl())
  const { settings } = dependencies
  const bySession = createSessionAuthenticator({ ledger, clock, settings, origins, baseUrl: () => baseUrl })
  const byToken = createAuthenticator({ state, ledger, clock, baseUrl: dependencies.baseUrl })
  return testApplication({
    features: [
      ...memberRoutes(dependencies),
      ...tokenRoutes(deps),
      ...catalogRoutes({ ...options, plainHttp: 'loopback' }),
      ...moreRoutes,
    ],
    authenticate: async (request) => (await bySession(request)) ?? (await byToken(request)),
    answers: createAnswerStore({ ledger, clock, key: new Uint8Array(32) }),
    clock,
    baseUrl,
    refused: ({ principal, requestId, route, permission }) =>
      recordAccessRefusal(deps, { principal, requestId }, { route, permission }),
  })
}
