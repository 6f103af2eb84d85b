/**
 * A gateway on a host of its own, as an operator sees it: what it needs, what it serves by, how it ends. Longer than
 * most: each test starts its own processes and says what becomes of all of them, so tests run side by side.
 */
import { beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { cpSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { makeSecret } from '../../src/identity/secret.ts'
import { eventually, until } from '../support/eventually.ts'
import { executable } from '../support/executable.ts'
import { run, temporaryDirectory } from '../support/harness.ts'
import { descendantsOf, environmentOf, isAlive, mappedFiles, signal } from '../support/processes.ts'
import { SidecarFleet } from '../support/sidecar-fleet.ts'

setDefaultTimeout(120_000)

beforeAll(async () => {
  await executable()
}, 240_000)

test.concurrent('a sidecar needs two variables, says what it waits for and serves after its first whole copy', async () => {
  await using fleet = await SidecarFleet.start()
  const token = await fleet.addToken()
  const gone = await fleet.addToken()
  await fleet.revoke(gone)
  fleet.sqld.freeze()
  const sidecar = await fleet.sidecar('first')
  await until('it answers', () => sidecar.readyz().then(({ ok }) => !ok))
  expect(await sidecar.ask(token)).toBe(503)
  fleet.sqld.thaw()
  const seen = new Set<number>()
  await until('it is ready', async () => {
    seen.add(await sidecar.ask(gone))
    return (await sidecar.readyz()).ok
  })
  expect(await sidecar.ask(token)).toBe(200)
  expect(await sidecar.ask(gone)).toBe(401)
  expect([...seen].filter((status) => status !== 401 && status !== 503)).toEqual([])
  expect((await sidecar.readyz()).staleness_seconds).toBeLessThan(30)
  expect(await sidecar.metric('gatehouse_replicated_bytes')).toBeGreaterThan(10_000)
  await sidecar.kill()
})

test.concurrent('a revocation has arrived when it is answered, and a new token arrives within the next sync', async () => {
  await using fleet = await SidecarFleet.start()
  const sidecar = await fleet.sidecar('revoked')
  await sidecar.ready()
  let status = 0
  // A machine that is too busy for an acknowledgement in its time says so, and is asked again.
  await eventually(async () => {
    const token = await fleet.addToken()
    await until('the new token is taken', async () => (await sidecar.ask(token)) === 200)
    const { acknowledged } = await fleet.revoke(token)
    status = await sidecar.ask(token)
    expect(acknowledged).toBe(1)
  })
  expect(status).toBe(401)
  await sidecar.kill()
})

test.concurrent('only the replicator loads the native addon, and it has no credential in its environment', async () => {
  await using fleet = await SidecarFleet.start()
  const sidecar = await fleet.sidecar('addon')
  await sidecar.ready()
  const addons = (pid: number) => mappedFiles(pid).filter((file) => file.includes('libsql') || file.endsWith('.node'))
  expect(addons(sidecar.gatewayPid())).toEqual([])
  expect(addons(sidecar.supervisorPid)).toEqual([])
  expect(addons(sidecar.replicatorPid())).toHaveLength(1)
  expect(environmentOf(sidecar.replicatorPid(), 'SERVICE_API_TOKEN')).toBeUndefined()
  expect(environmentOf(sidecar.replicatorPid(), 'RUST_LOG')).toBe('off')
  await sidecar.kill()
})

test.concurrent('a sidecar seals the credential and keys of its bootstrap on disk', async () => {
  await using fleet = await SidecarFleet.start()
  const sidecar = await fleet.sidecar('sealed')
  await sidecar.ready()
  const kept = readFileSync(join(sidecar.directory, 'gateway/worker/keys'), 'utf8')
  expect(kept).toMatch(/^v1\./)
  const files = readdirSync(join(sidecar.directory, 'gateway/worker'))
  for (const name of files.filter((each) => each !== 'outbox')) {
    expect(readFileSync(join(sidecar.directory, 'gateway/worker', name), 'latin1')).not.toContain(fleet.runtimeToken)
  }
  await sidecar.kill()
})

test.concurrent('SIGTERM, and the end of its supervisor or gateway, drains, deregisters and leaves no process', async () => {
  await using fleet = await SidecarFleet.start()
  const drained = await fleet.sidecar('drained')
  await drained.ready()
  const family = descendantsOf(drained.supervisorPid)
  expect(family).toHaveLength(2)
  const before = fleet.deregistrations
  signal(drained.supervisorPid, 'SIGTERM')
  expect(await drained.exited).toBe(0)
  await until('none is left', () => !family.some(isAlive))
  expect(fleet.deregistrations).toBe(before + 1)

  const killed = await fleet.sidecar('killed')
  await killed.ready()
  const below = descendantsOf(killed.supervisorPid)
  signal(killed.supervisorPid, 'SIGKILL')
  await until('none is left', () => !below.some(isAlive))

  const restarted = await fleet.sidecar('restarted')
  await restarted.ready()
  const [gateway, replicator] = [restarted.gatewayPid(), restarted.replicatorPid()]
  signal(gateway, 'SIGKILL')
  await until('its replicator has ended', () => !isAlive(replicator))
  await restarted.ready()
  expect(restarted.gatewayPid()).not.toBe(gateway)
  await restarted.kill()
})

test.concurrent('a deregistered sidecar is not waited for and serves nothing before it reconnects', async () => {
  await using fleet = await SidecarFleet.start()
  for (const end of ['SIGTERM', 'SIGKILL'] as const) {
    const former = await fleet.sidecar(`signed-off-${end}`)
    await former.ready()
    const token = await fleet.addToken()
    await until('the new token is taken', async () => (await former.ask(token)) === 200)
    const family = [former.supervisorPid, ...descendantsOf(former.supervisorPid)]
    const before = fleet.deregistrations
    // What is below a supervisor that was killed drains, and signs off by itself.
    signal(former.supervisorPid, end)
    await until('none is left', () => !family.some(isAlive))
    expect(fleet.deregistrations).toBe(before + 1)
    const { unreachable } = await fleet.revoke(token)
    const { instance_id: instance } = JSON.parse(
      readFileSync(join(former.directory, 'gateway/worker/instance.json'), 'utf8'),
    )
    expect(unreachable.filter(({ instance_id }) => instance_id === instance)).toEqual([])
    fleet.sqld.freeze()
    const cutOff = await fleet.sidecar(`signed-off-${end}`, { SERVICE_API_URL: 'http://127.0.0.1:1' })
    await until('it answers', () => cutOff.readyz().then(({ ok }) => !ok))
    expect(await cutOff.ask(token)).toBe(503)
    fleet.sqld.thaw()
    await cutOff.kill()
    const back = await fleet.sidecar(`signed-off-${end}`)
    await back.ready()
    expect(await back.ask(token)).toBe(401)
    await back.kill()
  }
})

test.concurrent('a second process on a data directory fails, and a copy that takes it over stops the first for good', async () => {
  await using fleet = await SidecarFleet.start()
  const first = await fleet.sidecar('original')
  await first.ready()
  const second = await fleet.sidecar('original')
  expect(await second.exited).toBe(1)
  expect(second.stderr()).toContain('is in use by another gatehouse, process ')
  const source = join(fleet.directory, 'original')
  cpSync(source, join(fleet.directory, 'copy'), { recursive: true })
  const copy = await fleet.sidecar('copy')
  await copy.ready()
  expect(await first.exited).toBe(1)
  expect(first.stderr()).toContain('Another gateway has taken over this instance')
  rmSync(join(source, 'gateway/worker'), { recursive: true })
  const again = await fleet.sidecar('original')
  await again.ready()
  expect((await copy.readyz()).ok).toBe(true)
  await Promise.all([copy.kill(), again.kill()])
})

test.concurrent('a control plane address in clear text is refused at start', async () => {
  const workingDirectory = temporaryDirectory()
  const answer = await run(['gateway'], {
    workingDirectory,
    env: {
      SERVICE_API_URL: 'http://gate.example.com',
      SERVICE_API_TOKEN: makeSecret('token', randomBytes),
      SERVICE_DATA: 'clear',
      SERVICE_GATEWAY_LISTEN: '127.0.0.1:0',
    },
  })
  expect(answer.code).toBe(2)
  expect(answer.stderr).toContain('must be reached over https')
  const nothing = await run(['gateway'], { workingDirectory, env: {} })
  expect(nothing.stderr).toContain('SERVICE_API_URL')
})

test.concurrent('a read credential is renewed before it expires, and replication continues', async () => {
  await using fleet = await SidecarFleet.start()
  fleet.credentialSeconds = 4
  const sidecar = await fleet.sidecar('renewed')
  await sidecar.ready()
  const before = fleet.credentials
  await until('it was renewed thrice', () => fleet.credentials >= before + 3, { withinMs: 60_000 })
  fleet.credentialSeconds = 600
  const token = await fleet.addToken()
  await until('the new token is taken', async () => (await sidecar.ask(token)) === 200)
  await sidecar.kill()
})

test.concurrent('a sidecar with a revoked runtime token refuses requests and says why', async () => {
  await using fleet = await SidecarFleet.start()
  const token = await fleet.addToken()
  const sidecar = await fleet.sidecar('a')
  await sidecar.ready()
  expect(await sidecar.ask(token)).toBe(200)
  await fleet.revoke(fleet.runtimeToken)
  await until('it is not ready', async () => !(await sidecar.readyz()).ok)
  expect((await sidecar.readyz()).reason).toContain('runtime token')
})
