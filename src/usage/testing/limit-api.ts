/** The routes of limits and tokens behind the real mount, for tests: called with the administrator's secret. */
import type { TemporaryInstallation } from '../../members/testing/installation.ts'
import { type ApiAnswer, temporaryApi } from '../../tokens/testing/api.ts'
import { limitRoutes } from '../api/limit-routes.ts'

export function temporaryLimitApi(made: TemporaryInstallation) {
  const call = temporaryApi(made, limitRoutes(made.deps))
  return (method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<ApiAnswer> =>
    call(method, path, { body, headers })
}
