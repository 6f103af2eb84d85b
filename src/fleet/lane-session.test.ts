import { Database } from 'bun:sqlite'
import { afterEach, beforeEach, expect, spyOn, test } from 'bun:test'
import { renameSync } from 'node:fs'
import { join } from 'node:path'
import { FileStateView } from './state-view.ts'
import { movableClock, TemporaryFleet, until } from './temporary-fleet.ts'

let fleet: TemporaryFleet

beforeEach(async () => {
  fleet = await TemporaryFleet.start()
})

afterEach(async () => {
  await fleet.remove()
})

test('acknowledges a change that is nothing but a denial, and reads the state when there is time', async () => {
  const lane = await fleet.lane('a', { beatEveryMs: 60_000, random: () => 1 })
  await until(() => lane.ready().ok)
  const hash = fleet.addToken()
  await until(() => lane.view.version === fleet.head().version)
  const { version } = fleet.revoke(hash, true)
  await until(() => lane.view.denied(hash))
  expect(await fleet.control.fleet.propagation(version)).toMatchObject({ connected: 1, acknowledged: 1 })
  expect(lane.view.version).toBeLessThan(version)
  await until(() => lane.view.version === version)
  expect(lane.view.denied(hash)).toBe(false)
})

function copyState(name: string): string {
  const file = join(fleet.directory, name)
  using state = new Database(fleet.stateFile)
  state.run('vacuum into ?', [file])
  return file
}

test('looks at a state that lags behind no oftener for many changes than for one, and reads the newest', async () => {
  const stateFile = copyState('behind.db')
  const lane = await fleet.lane('a', { stateFile })
  await until(() => lane.ready().ok && lane.counters.connected === 1)
  const head = Array.from({ length: 300 }, () => fleet.change(() => undefined)).at(-1)
  await until(async () => (await fleet.control.fleet.propagation(head?.version ?? 0)).acknowledged === 1)
  const refresh = spyOn(FileStateView.prototype, 'refresh')
  await Bun.sleep(400)
  expect(refresh.mock.calls.length).toBeLessThan(100)
  refresh.mockRestore()
  renameSync(copyState('current.db'), stateFile)
  await until(() => lane.view.version === head?.version)
})

test('goes stale where its state does not follow, whatever the control plane lets it know', async () => {
  const stateFile = copyState('behind.db')
  const clock = movableClock()
  const lane = await fleet.lane('a', { stateFile, clock })
  await until(() => lane.ready().ok && lane.counters.connected === 1)
  const { version } = fleet.change(() => undefined)
  await until(async () => (await fleet.control.fleet.propagation(version)).acknowledged === 1)
  clock.skip(100_000)
  await until(() => lane.ready().warning?.includes('does not come') ?? false)
  clock.skip(201_000)
  await Bun.sleep(120)
  expect(() => lane.standing.assertCurrent()).toThrow(expect.objectContaining({ code: 'token_state_stale' }))
  renameSync(copyState('current.db'), stateFile)
  await until(() => lane.ready().ok && lane.ready().warning === undefined)
  lane.standing.assertCurrent()
})
