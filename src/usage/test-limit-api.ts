/** The routes of limits and tokens behind the real mount, for tests: called with the administrator's secret. */
import { createAnswerStore } from '../api/idempotency.ts'
import { mount } from '../api/mount.ts'
import { silentLog } from '../lib/log.ts'
import type { TemporaryInstallation } from '../members/test-installation.ts'
import { createAuthenticator } from '../tokens/authenticate.ts'
import { tokenRoutes } from '../tokens/routes.ts'
import { limitRoutes } from './limit-routes.ts'

export function temporaryLimitApi(made: TemporaryInstallation) {
  const { deps, clock } = made
  const { state, ledger } = deps
  const api = mount({
    routes: [...limitRoutes(deps), ...tokenRoutes(deps)],
    authenticate: createAuthenticator({ state, ledger, clock }),
    answers: createAnswerStore({ ledger, clock, key: new Uint8Array(32) }),
    clock,
    newId: deps.newId,
    log: silentLog,
    baseUrl: 'http://localhost:1',
    gatewayUrl: 'http://localhost:2',
    gatewayRoutes: [],
    ready: () => ({ ok: true }),
    metrics: async () => '',
  })
  return async (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) => {
    const response = await api.fetch(
      new Request(`http://localhost${path}`, {
        method,
        headers: {
          authorization: `Bearer ${made.installation.adminToken ?? ''}`,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      }),
    )
    // biome-ignore lint/suspicious/noExplicitAny: a test reads whatever members it expects
    const json: any = await response.json()
    return { status: response.status, json, headers: response.headers }
  }
}
