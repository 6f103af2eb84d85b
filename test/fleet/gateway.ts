/**
 * A gateway of a fleet: a sidecar, `gatehouse gateway` with a control plane's address, a runtime token and its own
 * data.
 */
import { cpSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../support/eventually.ts'
import { freePort } from '../support/free-port.ts'
import { temporaryDirectory } from '../support/harness.ts'
import { isListenedOn } from '../support/processes.ts'
import { type Running, start } from './process.ts'

export interface FleetGateway extends AsyncDisposable {
  gatewayUrl: string
  /** Where it keeps what it must not lose. */
  directory: string
  running(): Running
  /** Kills it and starts it on the same directory and port. */
  restart(): Promise<void>
  /** Starts another process on a copy of its data directory, as a restored or cloned host would be. */
  twin(controlPlane: { baseUrl: string }): Promise<void>
  /** Ends it in order. */
  stop(): Promise<void>
}

export interface FleetGatewayOptions {
  /** Where it finds its control plane. */
  controlPlane: string
  runtimeToken: string
  /** Where its data is; otherwise a directory of its own. */
  directory?: string
  /** What else is in its environment. */
  environment?: Readonly<Record<string, string>>
}

/** Starts one at a control plane and waits until it is ready. */
export async function startFleetGateway(options: FleetGatewayOptions): Promise<FleetGateway> {
  const { controlPlane, runtimeToken, directory = join(temporaryDirectory(), 'data'), environment = {} } = options
  const port = await freePort()
  const gatewayUrl = `http://127.0.0.1:${port}`
  const launch = (apiUrl: string, data: string, listen: string) =>
    start(['gateway', '--data', data], {
      SERVICE_API_URL: apiUrl,
      SERVICE_API_TOKEN: runtimeToken,
      SERVICE_GATEWAY_LISTEN: listen,
      ...environment,
    })
  const begin = async () => {
    const gateway = await launch(controlPlane, directory, `127.0.0.1:${port}`)
    await until('the gateway is ready', async () => (await fetch(`${gatewayUrl}/readyz`)).ok, {
      withinMs: 30_000,
    }).catch((error: unknown) => {
      throw new Error(`${String(error)}\n${gateway.stdout()}\n${gateway.stderr()}`)
    })
    return gateway
  }
  let gateway = await begin()
  let other: Running | null = null
  return {
    gatewayUrl,
    directory,
    running: () => gateway,
    async restart() {
      await gateway.kill()
      await until('its port is free', () => !isListenedOn(port))
      gateway = await begin()
    },
    async twin({ baseUrl }) {
      const copy = `${directory}-copy`
      cpSync(directory, copy, { recursive: true })
      other = await launch(baseUrl, copy, '127.0.0.1:0')
    },
    async stop() {
      await gateway.end('SIGTERM')
    },
    async [Symbol.asyncDispose]() {
      await other?.kill()
      await gateway.kill()
      rmSync(join(directory, '..'), { recursive: true, force: true })
    },
  }
}
