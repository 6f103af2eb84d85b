/** The application with some features, for tests: no health figures, no gateway routes, no kept answers unless given. */
import { systemClock } from '../../lib/clock.ts'
import { newId } from '../../lib/ids.ts'
import { silentLog } from '../../lib/log/log.ts'
import { type ApplicationOptions, createApplication } from '../application.ts'

export const testApplication = (options: Pick<ApplicationOptions, 'features'> & Partial<ApplicationOptions>) =>
  createApplication({
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
    ...options,
  })
