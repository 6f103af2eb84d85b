/**
 * A gateway run from its sources beside an installation, for what its executable cannot be given: something loaded
 * before it, a profiler. It reads the installation's state and ships to its ledger as its own gateway does.
 */
import { join } from 'node:path'
import { repository } from '../../support/executable.ts'
import { freePort } from '../../support/free-port.ts'
import { cleanEnvironment, type Gatehouse } from '../../support/harness.ts'
import { runtimeTokenOf } from '../../support/runtime-token.ts'

export interface SourceGateway extends AsyncDisposable {
  url: string
  child: Bun.Subprocess
}

/** Starts it with flags for Bun and variables of its own. The caller ends it, and waits until it answers. */
export async function startFromSources(
  gatehouse: Gatehouse,
  flags: readonly string[],
  environment: Readonly<Record<string, string>>,
): Promise<SourceGateway> {
  const port = await freePort()
  const state = join(gatehouse.dataDirectory, 'state.db')
  const program = [join(repository, 'cli/main.ts'), 'gateway', '--state-file', state]
  const child = Bun.spawn([process.execPath, ...flags, ...program], {
    env: cleanEnvironment({
      // In a test too, as in service.
      BUN_JSC_useDFGJIT: '1',
      ...environment,
      SERVICE_API_URL: gatehouse.baseUrl,
      SERVICE_API_TOKEN: runtimeTokenOf(gatehouse),
      SERVICE_DATA: join(gatehouse.dataDirectory, `from-sources-${port}`),
      SERVICE_GATEWAY_LISTEN: `127.0.0.1:${port}`,
    }),
    stdin: 'ignore',
    stdout: 'ignore',
    stderr: 'inherit',
  })
  const end = async () => {
    child.kill()
    await child.exited
  }
  return { url: `http://127.0.0.1:${port}`, child, [Symbol.asyncDispose]: end }
}
