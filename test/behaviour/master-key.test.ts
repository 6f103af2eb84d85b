/** The master key is rotated while everything runs, and after the control plane was killed meanwhile. */
import { Database } from 'bun:sqlite'
import { afterEach, expect, setDefaultTimeout, test } from 'bun:test'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type FakeUpstream, startFakeUpstream } from '../fakes/upstream.ts'
import { api, chat, createToken } from '../support/client.ts'
import { until } from '../support/eventually.ts'
import { type Gatehouse, operate, run, startGatehouse, temporaryDirectory } from '../support/harness.ts'
import { isAlive } from '../support/processes.ts'

setDefaultTimeout(120_000)

let upstream: FakeUpstream | null = null
let running: Gatehouse | null = null
const data = temporaryDirectory()
afterEach(async () => {
  await running?.stop()
  await upstream?.close()
  rmSync(data, { recursive: true, force: true })
})

async function start(): Promise<Gatehouse> {
  upstream ??= await startFakeUpstream()
  running = await startGatehouse({ dataDirectory: data, upstream })
  return running
}

const file = (name: string) => readFileSync(join(data, name), 'utf8')
function sealedSecrets(): string[] {
  using ledger = new Database(join(data, 'ledger.db'), { readonly: true })
  const rows = ledger.query<{ sealed: string }, []>('select sealed from secrets').all()
  return rows.map(({ sealed }) => sealed)
}

/** Requests one after the other, until it is stopped; gives how many had an answer and which were not 200. */
function startLoad(gatehouse: Gatehouse, token: string) {
  let going = true
  const sending = (async () => {
    const statuses: number[] = []
    while (going) statuses.push((await chat(gatehouse, { token })).status)
    return { answered: statuses.length, refused: statuses.filter((status) => status !== 200) }
  })()
  return {
    stop: () => {
      going = false
      return sending
    },
  }
}

async function killControlPlane(gatehouse: Gatehouse): Promise<void> {
  const killed = gatehouse.controlPlanePid()
  process.kill(killed, 'SIGKILL')
  await until('the control plane is gone', () => !isAlive(killed))
  await until('the control plane is back', async () => {
    const answer = await fetch(`${gatehouse.baseUrl}/readyz`).catch(() => null)
    return answer?.status === 200
  })
}

test('rotates the master key under load and after a kill, and restores an older backup only with its former key', async () => {
  let gatehouse = await start()
  const before = { key: file('master-key'), sealed: sealedSecrets() }
  expect(before.sealed.length).toBeGreaterThan(2)
  const backup = join(data, 'backup-of-before')
  expect(await run(['backup', backup, '--data', data])).toMatchObject({ code: 0 })

  const { token_value: token } = await createToken(gatehouse)
  expect((await chat(gatehouse, { token })).status).toBe(200)
  const load = startLoad(gatehouse, token)
  const asked = await api(gatehouse, '/v1/master-key/rotate', { body: {} })
  expect([asked.status, asked.body]).toMatchObject([200, { source: 'file', rotation: 'running' }])
  expect(existsSync(join(data, 'master-key-next'))).toBe(true)
  await killControlPlane(gatehouse)
  const rotated = await operate(gatehouse, 'master-key', 'rotate', '--yes')
  expect([rotated.code, rotated.stderr]).toEqual([0, expect.stringContaining('goes on by itself')])
  const { answered, refused } = await load.stop()
  expect([refused, answered > 10]).toEqual([[], true])
  expect([file('master-key') === before.key, file('master-key-former')]).toEqual([false, before.key])
  expect(existsSync(join(data, 'master-key-next'))).toBe(false)
  expect(sealedSecrets().filter((sealed) => before.sealed.includes(sealed))).toEqual([])

  // A start opens everything with the new key, and the gateway calls its provider with what is sealed under it.
  await gatehouse.end('SIGTERM')
  gatehouse = await start()
  expect((await chat(gatehouse, { token })).status).toBe(200)
  await gatehouse.end('SIGTERM')
  const former = file('master-key-former')
  rmSync(join(data, 'master-key-former'))
  const refusedRestore = await run(['restore', backup, '--data', data])
  expect([refusedRestore.code, refusedRestore.stderr]).toEqual([2, expect.stringContaining('master-key-former')])
  writeFileSync(join(data, 'master-key-former'), former, { mode: 0o600 })
  expect(await run(['restore', backup, '--data', data])).toMatchObject({ code: 0 })
  expect(file('master-key')).toBe(before.key)
  await start()
})
