import { afterEach, beforeEach, expect, test } from 'bun:test'
import { TemporaryFleet, until } from './temporary-fleet.ts'

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
