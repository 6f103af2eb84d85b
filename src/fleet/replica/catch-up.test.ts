import { afterEach, beforeEach, expect, test } from 'bun:test'
import { join } from 'node:path'
import { eventually } from '../../../test/support/eventually.ts'
import { findTokensToRevokeAgain } from '../coordinator/lost-revocations.ts'
import { Outbox } from '../outbox/outbox.ts'
import { TemporaryFleet } from '../testing/temporary-fleet.ts'

let fleet: TemporaryFleet

beforeEach(async () => {
  fleet = await TemporaryFleet.start()
})

afterEach(async () => {
  await fleet.remove()
})

test('does not take a token that a worker learns of late for one that a restored primary let in again', async () => {
  const worker = await fleet.worker('a', { stateFile: join(fleet.directory, 'behind.db') })
  fleet.copyState(join(fleet.directory, 'behind.db'))
  const { journal } = worker
  if (!(journal instanceof Outbox)) throw new Error('A worker keeps its journal in an outbox')
  await eventually(() => worker.counters.connected === 1 && worker.ready().ok)
  const made = fleet.addUnheardToken()
  fleet.change(() => undefined)
  fleet.change(() => undefined)
  await eventually(() => journal.revocations.some(({ hashes }) => hashes.includes(made)))
  const copy = join(fleet.directory, 'copy.db')
  fleet.copyState(copy)
  expect(await findTokensToRevokeAgain(copy, null, journal.revocations)).toEqual([])
})
