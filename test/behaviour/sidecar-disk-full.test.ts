/**
 * A sidecar whose disk is full, the real way: its data directory on a small tmpfs that a ballast file fills. Needs the
 * right to mount; where it is not there the test says so and is skipped.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../support/eventually.ts'
import { executable } from '../support/executable.ts'
import { fillDisk } from '../support/full-disk.ts'
import { SidecarFleet } from '../support/sidecar-fleet.ts'

setDefaultTimeout(120_000)

let fleet: SidecarFleet
let directory: string
let mounted = false

beforeAll(async () => {
  await executable()
  fleet = await SidecarFleet.start()
  directory = join(fleet.directory, 'small')
  mkdirSync(directory)
  mounted = Bun.spawnSync(['mount', '-t', 'tmpfs', '-o', 'size=64m', 'tmpfs', directory]).exitCode === 0
  if (!mounted) console.warn('sidecar-disk-full.test.ts is skipped: mounting a tmpfs is not permitted here')
}, 240_000)
afterAll(async () => {
  if (mounted) Bun.spawnSync(['umount', '-l', directory])
  await fleet?.stop()
})

test('a sidecar on a full disk refuses tokens revoked before and meanwhile, and catches up afterwards', async () => {
  if (!mounted) return
  const [gone, later] = [await fleet.addToken(), await fleet.addToken()]
  const sidecar = await fleet.sidecar('small')
  await sidecar.ready()
  await fleet.revoke(gone)
  const ballast = join(directory, 'ballast')
  fillDisk(ballast)
  for (let made = 0; made < 60; made++) await fleet.addToken()
  await fleet.revoke(later)
  const found = new Set<number>()
  for (let ask = 0; ask < 200; ask++) {
    found.add(await sidecar.ask(gone))
    found.add(await sidecar.ask(later))
    await Bun.sleep(20)
  }
  expect([...found].filter((status) => status !== 401 && status !== 503)).toEqual([])
  rmSync(ballast)
  const next = await fleet.addToken()
  await until('the new token is taken', async () => (await sidecar.ask(next)) === 200, { withinMs: 40_000 })
  expect([await sidecar.ask(gone), await sidecar.ask(later)]).toEqual([401, 401])
  expect((await sidecar.readyz()).ok).toBe(true)
})
