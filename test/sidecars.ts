/** Further gateway processes beside that of `up`, on one installation: what several hosts would run. */
import { rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { createToken, installation } from './client.ts'
import { eventually } from './eventually.ts'
import { executable } from './executable.ts'
import { cleanEnvironment, type Gatehouse, temporaryDirectory } from './harness.ts'

export interface Sidecar {
  gatewayUrl: string
  pid: number
  kill(): Promise<void>
}

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  await new Promise((resolve) => server.close(resolve))
  if (address === null || typeof address === 'string') throw new Error('No port was free')
  return address.port
}

/** Starts one more gateway on the state of an installation, with a lane of its own, and waits until it is ready. */
export async function startSidecar(gatehouse: Gatehouse): Promise<Sidecar> {
  const { gatewayId, teamId } = await installation(gatehouse)
  const bindings = { gateway_id: gatewayId, team_id: teamId }
  const { token_value } = await createToken(gatehouse, { purpose: 'gateway_runtime', bindings })
  const data = temporaryDirectory()
  const port = await freePort()
  const listen = `127.0.0.1:${port}`
  const stateFile = join(gatehouse.dataDirectory, 'state.db')
  const child = Bun.spawn(
    [await executable(), 'gateway', '--state-file', stateFile, '--data', data, '--gateway-listen', listen],
    {
      env: cleanEnvironment({ SERVICE_API_URL: gatehouse.baseUrl, SERVICE_API_TOKEN: token_value }),
      stdin: 'ignore',
      stdout: 'ignore',
      stderr: 'ignore',
    },
  )
  const kill = async () => {
    child.kill('SIGKILL')
    await child.exited
    rmSync(data, { recursive: true, force: true })
  }
  const gatewayUrl = `http://${listen}`
  await eventually(
    async () => {
      const { status } = await fetch(`${gatewayUrl}/readyz`)
      if (status !== 200) throw new Error(`The gateway is not ready: ${status}`)
    },
    { withinMs: 10_000 },
  ).catch(async (error) => {
    await kill()
    throw error
  })
  return { gatewayUrl, pid: child.pid, kill }
}
