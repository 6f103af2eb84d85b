/**
 * The application with some features, for tests: no health figures, no gateway routes, no kept answers unless given.
 * Every failure that a route answers with must be in its description.
 */
import { systemClock } from '../../lib/clock.ts'
import { newId } from '../../lib/ids.ts'
import { silentLog } from '../../lib/log/log.ts'
import { type ApplicationOptions, createApplication } from '../application.ts'
import { openApiPath } from '../conventions.ts'
import { operationOf } from '../openapi/operation.ts'

export function testApplication(options: Pick<ApplicationOptions, 'features'> & Partial<ApplicationOptions>) {
  const application = createApplication({
    authenticate: () => Promise.reject(new Error('No test caller')),
    answers: { begin: () => Promise.reject(new Error('No answers are kept')) },
    clock: systemClock,
    newId,
    log: silentLog,
    baseUrl: 'http://localhost:7070',
    gatewayUrl: 'http://localhost:7080',
    gatewayRoutes: async () => [],
    ready: () => ({ ok: true }),
    metrics: async () => '',
    answered: ({ method, path, status }) => requireDescribed(method, path, status),
    ...options,
  })
  const requireDescribed = (method: string, path: string | null, status: number) => {
    if (path === null || status < 400 || status === 500) return
    const route = application.routes.find((each) => each.method === method && openApiPath(each.path) === path)
    if (route === undefined || route.hooks.internal) return
    if (Object.hasOwn(Object(operationOf(route, {}).responses), status)) return
    console.error(`${method} ${path} answered ${status}, which its description does not list`)
    throw new Error('A failure is not described')
  }
  return application
}
