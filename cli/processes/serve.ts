/** `control-plane` and `gateway`: one server each, on their own or as children of `up`. */

import { join, resolve } from 'node:path'
import { defineCommand } from 'citty'
import type { Settings } from '../../src/config.ts'
import { Failure } from '../../src/failure.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { newId } from '../../src/lib/ids.ts'
import { lockDirectory } from '../../src/lib/lock.ts'
import { createLog } from '../../src/lib/log/json-log.ts'
import { readSettings, settingFlags } from '../command/settings.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { type Handover, isHandover } from './child-message.ts'
import { announce, firstStartFlags } from './first-start.ts'
import { serveUntilStopped } from './lifecycle.ts'
import { alreadyRunning, dataFailure } from './start-failure.ts'

export const controlPlaneCommand = (terminal: Terminal) =>
  defineCommand({
    meta: { description: 'Serve the control plane only' },
    args: { ...settingFlags(['api_url']), ...firstStartFlags },
    async run({ args }) {
      const { settings } = readSettings(args, terminal.environment)
      const log = createLog({ level: settings.log_level, fields: { process: 'control-plane' }, destination: 'stdout' })
      await serveUntilStopped({
        settings,
        log,
        listen: 'control_plane_listen',
        async start(say) {
          await holdDatabases(settings.data)
          const { controlPlane } = await import('../../src/app/control-plane.ts')
          const environment = process.env
          const onRuntimeToken = (runtime_token: string) => void say({ ...message, runtime_token })
          const plane = await controlPlane({
            ...{ settings, environment, clock: systemClock, newId, log, onRuntimeToken },
            onListening: (handed) => void say({ ready: 'soon', ...handed }),
          })
          const message = {
            ready: 'control-plane',
            base_url: plane.baseUrl,
            state_file: plane.stateFile,
            runtime_token: plane.runtimeToken,
            admin_token: plane.adminToken,
            setup_url: plane.setupUrl,
          } as const
          const ready = Promise.resolve(message)
          return { ready, announced: () => plane.shown(), drain: () => plane.drain() }
        },
        async announce(message) {
          if (message.ready !== 'control-plane') return
          await announce({ settings, plane: message, gatewayUrl: null, args, terminal })
        },
      })
    },
  })

/** How long a control plane waits for one before it, which may still be draining. */
const databasesWaitMilliseconds = 10_000

/**
 * One process opens the databases for writing (store/README.md). This lock is apart from the supervisor's: a
 * control plane that outlives its supervisor for a moment keeps its successor waiting.
 */
async function holdDatabases(data: string): Promise<void> {
  const directory = join(resolve(data), 'control-plane')
  const giveUp = systemClock.monotonic() + databasesWaitMilliseconds
  for (;;) {
    try {
      if (lockDirectory(directory) !== null) return
    } catch (error) {
      throw dataFailure(error, data)
    }
    if (systemClock.monotonic() > giveUp) {
      throw alreadyRunning(directory, `The data directory ${resolve(data)} is in use by another control plane`)
    }
    await Bun.sleep(50)
  }
}

export const gatewayCommand = (terminal: Terminal) =>
  defineCommand({
    meta: { description: 'Serve the gateway only; gateway alone does the same' },
    args: {
      ...settingFlags(['control_plane_listen', 'base_url', 'console_url']),
      'state-file': { type: 'string', hidden: true },
      replicator: { type: 'boolean', hidden: true },
      worker: { type: 'string', hidden: true },
      farewell: { type: 'boolean', hidden: true },
      handover: { type: 'boolean', hidden: true },
    },
    async run({ args }) {
      if (args.replicator) await (await import('../../src/app/replicator.ts')).serveReplicator()
      const loaded = readSettings(args, terminal.environment).settings
      const handed = args.handover ? await handedOver() : null
      const settings = handed === null ? loaded : { ...loaded, api_token: handed.api_token }
      const named = args['state-file'] ?? null
      const stateFile = handed?.state_file ?? named
      if (args.farewell) await farewell(settings, stateFile, Number(args.worker))
      const supervised = process.send !== undefined
      if (stateFile === null && !supervised) {
        await (await import('./sidecar.ts')).superviseGateway(settings, terminal)
      }
      const log = createLog({ level: settings.log_level, fields: { process: 'gateway' }, destination: 'stdout' })
      await serveUntilStopped({
        settings,
        log,
        listen: 'gateway_listen',
        async start() {
          const { gateway } = await import('../../src/app/gateway.ts')
          const { self } = await import('./up.ts')
          const replicator = [...self(), 'gateway', '--replicator']
          const worker = { index: Number(args.worker ?? 0), count: settings.gateway_workers }
          const server = await gateway({
            settings,
            stateFile,
            replicator,
            position: worker,
            clock: systemClock,
            newId,
            log,
          })
          const ready = server.ready().then(() => ({ ready: 'gateway', url: server.url }) as const)
          return { ready, over: server.over, drain: () => server.drain() }
        },
        async announce(message) {
          if (message.ready === 'gateway') await terminal.write(`The gateway is ready at ${message.url}\n`)
        },
      })
    },
  })

/**
 * Waits, beside the control plane that starts, for what that will say; what a gateway consists of is loaded meanwhile.
 * Nothing is held yet: a signal ends this process at once, and so does the end of the supervisor.
 */
async function handedOver(): Promise<Handover> {
  const { promise, resolve } = Promise.withResolvers<unknown>()
  const leave = () => process.exit(0)
  process.once('message', resolve)
  process.once('disconnect', leave)
  await import('../../src/app/gateway.ts')
  const handed = await promise
  process.off('disconnect', leave)
  if (!isHandover(handed)) throw new Failure('process_failed')
  return handed
}

/** Reports what is left of a worker that is wanted no longer, and ends. */
async function farewell(settings: Settings, stateFile: string | null, index: number): Promise<never> {
  const { api_url: apiUrl, api_token: apiToken, data } = settings
  if (apiUrl === undefined || apiToken === undefined) throw new Failure('usage')
  const log = createLog({ level: settings.log_level, fields: { process: 'gateway' }, destination: 'stdout' })
  const { endFormerWorker } = await import('../../src/app/former-worker.ts')
  await endFormerWorker({ index, data, settings, stateFile, apiUrl, apiToken, clock: systemClock, newId, log })
  process.exit(0)
}
