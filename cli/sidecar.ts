/**
 * `gateway` on a host of its own: this process only supervises. It holds the lock on the data directory, keeps one
 * gateway running, which keeps its replicator, and on SIGTERM or SIGINT lets the gateway drain. A gateway that is killed
 * is started again on the same port, and serves from what it had kept, whoever else is out of reach.
 */
import { resolve } from 'node:path'
import { environmentName, type Settings } from '../src/config.ts'
import { Failure } from '../src/failure.ts'
import { systemClock } from '../src/lib/clock.ts'
import { createLog } from '../src/lib/json-log.ts'
import { localUrl } from '../src/lib/listen.ts'
import { recordingTime } from './lifecycle.ts'
import { keepRunning } from './supervisor.ts'
import type { Terminal } from './terminal.ts'
import { gatewayProcessEnvironment, holdDirectory, reserve, self, stopRequest } from './up.ts'

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
  const children: ReturnType<typeof keepRunning>[] = []
  const stop = stopRequest(children)
  const child = keepRunning({
    name: 'gateway',
    command: [...self(), 'gateway'],
    environment: gatewayProcessEnvironment(settings),
    clock: systemClock,
    log: createLog({ level: settings.log_level, fields: { process: 'supervisor' }, destination: 'stderr' }),
    onOver: over.reject,
  })
  children.push(child)
  try {
    const ready = await Promise.race([child.ready, stop.asked.then(() => null), over.promise])
    if (ready !== null) await terminal.write(`The gateway is ready at ${localUrl(address)}\n`)
    await Promise.race([stop.asked, over.promise])
  } finally {
    await child.stop(settings.drain_seconds * 1000 + recordingTime + 500)
  }
  process.exit(0)
}
