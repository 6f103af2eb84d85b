/** A gateway of a fleet: `gatehouse gateway` on a copy of the state that a process beside it keeps current. */
import { cpSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { z } from 'zod'
import { eventually, until } from '../eventually.ts'
import { freePort } from '../free-port.ts'
import { temporaryDirectory } from '../harness.ts'
import { type Running, start, startCommand } from './process.ts'

export interface FleetGateway extends AsyncDisposable {
  gatewayUrl: string
  running(): Running
  /** Which control plane it talks to is given anew; it keeps its data directory. */
  restart(controlPlane?: string): Promise<void>
  /** Starts another process on a copy of its data directory, as a restored or cloned host would be. */
  twin(controlPlane: { baseUrl: string }): Promise<void>
  /** Ends it in order. */
  stop(): Promise<void>
}

const bootstrapped = z.object({ state: z.object({ kind: z.literal('replica'), url: z.string(), token: z.string() }) })

/** Starts one at a control plane and waits until it is ready. */
export async function startFleetGateway(controlPlane: string, runtimeToken: string): Promise<FleetGateway> {
  const directory = temporaryDirectory()
  const port = await freePort()
  const file = join(directory, 'replica.db')
  const source = await bootstrap(controlPlane, runtimeToken)
  const replicator = startCommand(
    [process.execPath, resolve(import.meta.dir, 'replicate.ts'), file, source.url, source.token],
    { RUST_LOG: 'off' },
  )
  const begin = async (apiUrl: string) => {
    const gateway = await start(['gateway', '--state-file', file, '--data', join(directory, 'data')], {
      SERVICE_API_URL: apiUrl,
      SERVICE_API_TOKEN: runtimeToken,
      SERVICE_GATEWAY_LISTEN: `127.0.0.1:${port}`,
    })
    await until('the gateway is ready', async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).ok, {
      withinMs: 20_000,
    }).catch((error: unknown) => {
      throw new Error(`${String(error)}\n${gateway.stdout()}\n${gateway.stderr()}`)
    })
    return gateway
  }
  await until('the replica is there', () => replicator.stdout().includes('synced'))
  let gateway = await begin(controlPlane)
  let other: Running | null = null
  return {
    gatewayUrl: `http://127.0.0.1:${port}`,
    running: () => gateway,
    async restart(apiUrl = controlPlane) {
      await gateway.kill()
      gateway = await begin(apiUrl)
    },
    async twin({ baseUrl }) {
      const copy = join(directory, 'copy')
      cpSync(join(directory, 'data'), copy, { recursive: true })
      other = await start(['gateway', '--state-file', file, '--data', copy], {
        SERVICE_API_URL: baseUrl,
        SERVICE_API_TOKEN: runtimeToken,
        SERVICE_GATEWAY_LISTEN: '127.0.0.1:0',
      })
    },
    async stop() {
      await gateway.end('SIGTERM')
    },
    async [Symbol.asyncDispose]() {
      await other?.kill()
      await gateway.kill()
      await replicator.kill()
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

/** What a control plane gives a new instance to read the state with. */
export const bootstrap = (controlPlane: string, runtimeToken: string) =>
  eventually(async () => {
    const answer = await fetch(`${controlPlane}/v1/gateway-runtime/bootstrap`, {
      method: 'POST',
      headers: { authorization: `Bearer ${runtimeToken}`, 'content-type': 'application/json' },
      body: JSON.stringify({ instance_id: Bun.randomUUIDv7(), version: '0.2.0', lanes: 1 }),
    })
    return bootstrapped.parse(await answer.json()).state
  })
