import { expect, setDefaultTimeout, test } from 'bun:test'
import { rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { executable } from '../support/executable.ts'
import { cleanEnvironment, startGatehouse, temporaryDirectory } from '../support/harness.ts'

setDefaultTimeout(240_000)

const script = join(import.meta.dir, 'operators-day.sh')

test("an operator's day needs commands and names alone", async () => {
  await using gatehouse = await startGatehouse()
  const directory = temporaryDirectory()
  try {
    symlinkSync(await executable(), join(directory, 'gatehouse'))
    const day = Bun.spawn(['bash', script], {
      cwd: directory,
      env: {
        ...cleanEnvironment(),
        PATH: `${directory}:${process.env.PATH}`,
        SERVICE_API_URL: gatehouse.baseUrl,
        SERVICE_API_TOKEN: gatehouse.adminToken,
        GATEWAY_URL: gatehouse.gatewayUrl,
        DATA: gatehouse.dataDirectory,
      },
      ...{ stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' },
    })
    const [code, said, complaint] = await Promise.all([day.exited, day.stdout.text(), day.stderr.text()])
    const last = said.split('\n').slice(-30).join('\n')
    expect(code === 0 ? 0 : `${code}\n${last}\n${complaint}`).toBe(0)
    // None but the report that was asked for as JSON, and the code that connect shows.
    const json = said.split('\n').filter((line) => /\{"\w+":/.test(line))
    expect(json).toEqual([expect.stringContaining('messages=['), expect.stringContaining('"rows"')])
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
})

test('the script names no record by its id', async () => {
  expect(await Bun.file(script).text()).not.toMatch(/[0-9a-f]{8}-[0-9a-f]{4}-/)
})
