/** More gateway processes beside the one that `up` starts: workers of their own on the same state file. */
import { join } from 'node:path'
import { until } from './eventually.ts'
import { executable } from './executable.ts'
import { freePort } from './free-port.ts'
import { cleanEnvironment, collect, type Gatehouse } from './harness.ts'
import { isAlive, isListenedOn, signal } from './processes.ts'
import { runtimeTokenOf } from './runtime-token.ts'

export interface MoreGateway extends AsyncDisposable {
  url: string
  pid(): number
  /** How often its process ended by itself and was started again. */
  replacements(): number
  /** Where it keeps what it must not lose. */
  directory: string
  ready(): Promise<void>
  /** Kills it, and starts another on the same directory and port. */
  restart(between?: () => void): Promise<void>
}

/** Starts one under a name of its own, with what `up` gave its own gateway, and waits until it is ready. */
export async function startMoreGateway(gatehouse: Gatehouse, name: string): Promise<MoreGateway> {
  const path = await executable()
  const token = runtimeTokenOf(gatehouse)
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const start = () => {
    const started = Bun.spawn([path, 'gateway', '--state-file', join(gatehouse.dataDirectory, 'state.db')], {
      env: cleanEnvironment({
        SERVICE_API_URL: gatehouse.baseUrl,
        SERVICE_API_TOKEN: token,
        SERVICE_DATA: join(gatehouse.dataDirectory, name),
        SERVICE_GATEWAY_LISTEN: `127.0.0.1:${port}`,
        BUN_CONFIG_MAX_HTTP_REQUESTS: '65000',
      }),
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'pipe',
    })
    collect(started.stdout)
    collect(started.stderr)
    // As a supervisor does: one that ends by itself is started again.
    started.exited.then(() => {
      if (stopping) return
      replacements += 1
      child = start()
    })
    return started
  }
  let stopping = false
  let replacements = 0
  let child = start()
  const ready = () => until(`${name} is ready`, async () => (await fetch(`${url}/readyz`)).ok, { withinMs: 60_000 })
  const stop = async () => {
    stopping = true
    signal(child.pid, 'SIGKILL')
    await child.exited
    await until(`${name} has ended`, () => !isAlive(child.pid))
  }
  await ready().catch(async (error) => {
    await stop()
    throw error
  })
  return {
    url,
    pid: () => child.pid,
    replacements: () => replacements,
    directory: join(gatehouse.dataDirectory, name),
    ready,
    async restart(between) {
      await stop()
      await until('its port is free', () => !isListenedOn(port))
      between?.()
      stopping = false
      child = start()
      await ready()
    },
    [Symbol.asyncDispose]: stop,
  }
}
