/** The token routes behind the real mount, for tests: called with a secret, answering with status and JSON. */
import type { AnyElysia } from 'elysia'
import { createAnswerStore } from '../../api/answer-store.ts'
import { testApplication } from '../../api/testing/application.ts'
import type { TemporaryInstallation } from '../../members/testing/installation.ts'
import { createAuthenticator } from '../authenticate.ts'
import { tokenRoutes } from '../routes.ts'

export interface ApiAnswer {
  status: number
  // biome-ignore lint/suspicious/noExplicitAny: a test reads whatever members it expects
  json: any
  headers: Headers
}

export interface CallOptions {
  body?: unknown
  headers?: Record<string, string>
  /** The secret to call with; the administrator token unless told otherwise. */
  secret?: string
}

/** With `beside`, further routes. */
export function temporaryApi(made: TemporaryInstallation, beside: readonly AnyElysia[] = []) {
  const { state, ledger } = made.store
  const api = testApplication({
    features: [...beside, ...tokenRoutes(made.deps)],
    authenticate: createAuthenticator({ state, ledger, clock: made.clock, baseUrl: () => 'http://localhost' }),
    answers: createAnswerStore({ ledger, clock: made.clock, key: new Uint8Array(32) }),
    clock: made.clock,
    newId: made.deps.newId,
    baseUrl: 'http://localhost:1',
  })
  return async (method: string, path: string, options: CallOptions = {}): Promise<ApiAnswer> => {
    const { body, headers = {}, secret = made.installation.adminToken ?? '' } = options
    const response = await api.fetch(
      new Request(`http://localhost${path}`, {
        method,
        headers: {
          authorization: `Bearer ${secret}`,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      }),
    )
    return { status: response.status, json: await response.json(), headers: response.headers }
  }
}
