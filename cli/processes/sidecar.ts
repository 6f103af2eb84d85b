/**
 * `gateway` on a host of its own: this process only supervises. It holds the lock on the data directory and runs one
 * gateway, or as many workers as `gateway_workers` says; the first of them runs the replicator. On SIGTERM or SIGINT it
 * lets them drain. It restarts a gateway that is killed on the same port; that gateway serves from its files, even if no
 * other host can be reached.
 */
import { resolve } from 'node:path'
import { environmentName, type Settings } from '../../src/config.ts'
import { Failure } from '../../src/failure.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { localUrl } from '../../src/lib/http/listen.ts'
import { createLog } from '../../src/lib/log/json-log.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { recordingTime } from './lifecycle.ts'
import { type Child, keepRunning } from './supervisor.ts'
import { gatewayProcessEnvironment, holdDirectory, reserve, self, stopRequest } from './up.ts'
import { endFormerWorkers, keepWorkers } from './workers.ts'

/** Runs to the end of the process. Throws what the gateway could not start with, or must not go on for. */
export async function superviseGateway(loaded: Settings, terminal: Terminal): Promise<never> {
  for (const name of ['api_url', 'api_token'] as const) {
    if (loaded[name] !== undefined) continue
    throw new Failure('invalid_parameter', { message: `A gateway needs ${environmentName(name)}`, param: name })
  }
  holdDirectory(loaded.data)
  const { address, release } = reserve(loaded, 'gateway_listen')
  release()
  const settings: Settings = { ...loaded, gateway_listen: address, data: resolve(loaded.data) }
  const over = Promise.withResolvers<never>()
  const children: Child[] = []
  const stop = stopRequest(children)
  const environment = gatewayProcessEnvironment(settings)
  const log = createLog({ level: settings.log_level, fields: { process: 'supervisor' }, destination: 'stderr' })
  endFormerWorkers(settings, self(), environment, [])
  children.push(
    ...keepWorkers(settings, [], (name, words) =>
      keepRunning({ name, command: [...self(), ...words], environment, clock: systemClock, log, onOver: over.reject }),
    ),
  )
  try {
    const allReady = Promise.all(children.map((child) => child.ready))
    const ready = await Promise.race([allReady, stop.asked.then(() => null), over.promise])
    if (ready !== null) await terminal.write(`The gateway is ready at ${localUrl(address)}\n`)
    await Promise.race([stop.asked, over.promise])
  } finally {
    await Promise.all(children.map((child) => child.stop(settings.drain_seconds * 1000 + recordingTime + 500)))
  }
  process.exit(0)
}
