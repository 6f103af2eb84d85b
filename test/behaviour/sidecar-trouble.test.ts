/**
 * What a sidecar does when something breaks: its primary, its control plane, its replicator, its files. Longer than
 * most: each case brings the trouble about for real, on processes and files of its own, so cases run side by side.
 */
import { beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { readdirSync, readlinkSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../support/eventually.ts'
import { executable } from '../support/executable.ts'
import { signal } from '../support/processes.ts'
import { type Sidecar, SidecarFleet } from '../support/sidecar-fleet.ts'

setDefaultTimeout(120_000)

beforeAll(async () => {
  await executable()
}, 240_000)

const folderOf = ({ directory }: Sidecar): string => {
  const replica = join(directory, 'gateway/replica')
  return join(replica, readlinkSync(join(replica, 'current')))
}

/** Asks with tokens and their right statuses until `done`, told of how often; gives every answer that was another. */
async function wrongAnswers(
  sidecar: Sidecar,
  right: ReadonlyMap<string, number>,
  done: (asked: number) => boolean,
): Promise<{ wrong: number[]; asked: number }> {
  const wrong: number[] = []
  let asked = 0
  while (!done(asked)) {
    for (const [token, status] of right) {
      const answer = await sidecar.ask(token)
      asked++
      if (answer !== status) wrong.push(answer)
    }
    // What is waited for needs the processor too.
    await Bun.sleep(2)
  }
  return { wrong, asked }
}

test.concurrent('a replicator that is killed repeatedly breaks no answer, and changes arrive in between', async () => {
  await using fleet = await SidecarFleet.start()
  const [good, gone] = [await fleet.addToken(), await fleet.addToken()]
  const sidecar = await fleet.sidecar('a')
  await sidecar.ready()
  await fleet.revoke(gone)
  let over = false
  const asking = wrongAnswers(
    sidecar,
    new Map([
      [good, 200],
      [gone, 401],
    ]),
    (asked) => over && asked > 100,
  )
  for (let kill = 0; kill < 12; kill++) {
    await until('there is a replicator', () => {
      signal(sidecar.replicatorPid(), 'SIGKILL')
      return true
    })
    const { version } = await fleet.change([])
    await until('it came back', async () => (await sidecar.metric('gatehouse_state_version')) >= version)
  }
  over = true
  const { wrong, asked } = await asking
  expect(wrong).toEqual([])
  expect(asked).toBeGreaterThan(100)
  expect(await sidecar.metric('gatehouse_replicator_restarts')).toBeGreaterThanOrEqual(12)
})

test.concurrent('a hanging replicator is killed and replaced', async () => {
  await using fleet = await SidecarFleet.start()
  const sidecar = await fleet.sidecar('a')
  await sidecar.ready()
  const hung = sidecar.replicatorPid()
  signal(hung, 'SIGSTOP')
  const { version } = await fleet.change([])
  await until('it came on', async () => (await sidecar.metric('gatehouse_state_version')) >= version, {
    withinMs: 40_000,
  })
  expect(sidecar.replicatorPid()).not.toBe(hung)
  expect((await sidecar.readyz()).ok).toBe(true)
})

test.concurrent('a hanging primary delays no answer, and its changes are read once it resumes', async () => {
  await using fleet = await SidecarFleet.start()
  const token = await fleet.addToken()
  const sidecar = await fleet.sidecar('a')
  await sidecar.ready()
  fleet.sqld.freeze()
  // Of answers that wait for the primary, even for a second each, there would not be as many.
  for (let asked = 0; asked < 100; asked++) expect(await sidecar.ask(token)).toBe(200)
  await until('it has no news', async () => ((await sidecar.readyz()).staleness_seconds ?? 0) > 2)
  expect(await sidecar.ask(token)).toBe(200)
  fleet.sqld.thaw()
  const next = await fleet.addToken()
  await until('the new token is taken', async () => (await sidecar.ask(next)) === 200, { withinMs: 60_000 })
}, 60_000)

test.concurrent('a primary that returns with another log is copied anew without an interruption', async () => {
  await using fleet = await SidecarFleet.start()
  const [good, gone] = [await fleet.addToken(), await fleet.addToken()]
  const sidecar = await fleet.sidecar('a')
  await sidecar.ready()
  await fleet.revoke(gone)
  const before = folderOf(sidecar)
  let over = false
  const asking = wrongAnswers(
    sidecar,
    new Map([
      [good, 200],
      [gone, 401],
    ]),
    () => over,
  )
  await fleet.sqld.restart()
  const next = await fleet.addToken()
  await until('the new token is taken', async () => (await sidecar.ask(next)) === 200, { withinMs: 60_000 })
  over = true
  expect((await asking).wrong).toEqual([])
  expect(folderOf(sidecar)).not.toBe(before)
  expect(fleet.told).toEqual([])
  await until('the former copy is gone', () => readdirSync(join(sidecar.directory, 'gateway/replica')).length === 2)
})

test.concurrent('a sidecar without any other process restarts from its copy until that is too old', async () => {
  await using fleet = await SidecarFleet.start(8)
  const [good, gone] = [await fleet.addToken(), await fleet.addToken()]
  const first = await fleet.sidecar('a')
  await first.ready()
  await fleet.revoke(gone)
  await until('it is read', async () => (await first.metric('gatehouse_pending_revocations')) === 0)
  await fleet.stopControlPlane()
  await fleet.sqld.kill()
  await first.kill()
  const second = await fleet.sidecar('a')
  await second.ready()
  expect([await second.ask(good), await second.ask(gone)]).toEqual([200, 401])
  await until('it refuses', async () => (await second.ask(good)) === 503, { withinMs: 30_000 })
  expect((await second.readyz()).reason).toContain('too old')
})

describe('a primary restored from an older copy', () => {
  test.concurrent('revives no token, because sidecars report known revocations before the copy is read', async () => {
    await using fleet = await SidecarFleet.start()
    const [good, gone] = [await fleet.addToken(), await fleet.addToken()]
    const copy = await fleet.sqld.copy()
    const sidecar = await fleet.sidecar('a')
    await sidecar.ready()
    await fleet.revoke(gone)
    await fleet.change([])
    let over = false
    const asking = wrongAnswers(sidecar, new Map([[gone, 401]]), () => over)
    await fleet.stopControlPlane()
    await fleet.sqld.restore(copy)
    fleet.startControlPlane()
    await until('it was told', () => fleet.told.length > 0, { withinMs: 90_000 })
    const next = await fleet.addToken()
    await until('the new token is taken', async () => (await sidecar.ask(next)) === 200, { withinMs: 30_000 })
    over = true
    expect((await asking).wrong).toEqual([])
    expect(await sidecar.ask(good)).toBe(200)
    expect((await fleet.revoke(next)).acknowledged).toBe(1)
    expect(await sidecar.ask(next)).toBe(401)
    expect(
      (await fleet.client().execute('select count(*) as n from tokens where revoked_at is not null')).rows[0]?.n,
    ).toBe(2)
  })

  test.concurrent('revives no token even when the copy has passed the version that the sidecar knew', async () => {
    await using fleet = await SidecarFleet.start()
    const gone = await fleet.addToken()
    const copy = await fleet.sqld.copy()
    const sidecar = await fleet.sidecar('a')
    await sidecar.ready()
    await fleet.revoke(gone)
    await fleet.stopControlPlane()
    await fleet.sqld.restore(copy)
    for (let change = 0; change < 5; change++) await fleet.change([])
    let over = false
    const asking = wrongAnswers(sidecar, new Map([[gone, 401]]), () => over)
    fleet.startControlPlane()
    await until('it was told', () => fleet.told.length > 0, { withinMs: 90_000 })
    const next = await fleet.addToken()
    await until('the new token is taken', async () => (await sidecar.ask(next)) === 200, { withinMs: 30_000 })
    over = true
    expect((await asking).wrong).toEqual([])
  })
})

describe('damaged files of the replica', () => {
  const harms = {
    removed: (path: string) => rmSync(path),
    truncated: (path: string) => truncateSync(path, 7),
    overwritten: (path: string) => writeFileSync(path, Buffer.alloc(40_000, 'garbage')),
  }
  test.concurrent('never admit a revoked token: it is refused without the primary, and the files are rebuilt with it', async () => {
    await using fleet = await SidecarFleet.start()
    const [good, gone] = [await fleet.addToken(), await fleet.addToken()]
    let sidecar = await fleet.sidecar('a')
    await sidecar.ready()
    await fleet.revoke(gone)
    await until('it is read', async () => (await sidecar.metric('gatehouse_pending_revocations')) === 0)
    const found: string[] = []
    for (const [name, harm] of Object.entries(harms)) {
      for (const suffix of ['', '-wal', '-shm', '-client_wal_index']) {
        const folder = folderOf(sidecar)
        await sidecar.kill()
        harm(join(folder, `state.db${suffix}`))
        fleet.primaryUrl = 'http://127.0.0.1:1'
        sidecar = await fleet.sidecar('a')
        await until('it answers', async () => (await sidecar.ask(gone)) !== 0)
        for (let ask = 0; ask < 10; ask++) {
          const answers = [await sidecar.ask(good), await sidecar.ask(gone)]
          if (answers[0] !== 200 && answers[0] !== 503) found.push(`${name} ${suffix}: good ${answers[0]}`)
          if (answers[1] !== 401 && answers[1] !== 503) found.push(`${name} ${suffix}: gone ${answers[1]}`)
        }
        await sidecar.kill()
        fleet.primaryUrl = null
        sidecar = await fleet.sidecar('a')
        await sidecar.ready()
        if ((await sidecar.ask(good)) !== 200) found.push(`${name} ${suffix}: good was not served again`)
        if ((await sidecar.ask(gone)) !== 401) found.push(`${name} ${suffix}: gone was let in`)
      }
    }
    expect(found).toEqual([])
  })

  test.concurrent('are rebuilt while the sidecar serves when they disappear', async () => {
    await using fleet = await SidecarFleet.start()
    const [good, gone] = [await fleet.addToken(), await fleet.addToken()]
    const sidecar = await fleet.sidecar('a')
    await sidecar.ready()
    await fleet.revoke(gone)
    const folder = folderOf(sidecar)
    let over = false
    const asking = wrongAnswers(
      sidecar,
      new Map([
        [good, 200],
        [gone, 401],
      ]),
      () => over,
    )
    rmSync(folder, { recursive: true })
    const next = await fleet.addToken()
    await until('the new token is taken', async () => (await sidecar.ask(next)) === 200, { withinMs: 30_000 })
    over = true
    expect((await asking).wrong).toEqual([])
  })
})
