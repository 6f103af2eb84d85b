/** How often a worker whose state is a replica has the primary asked for more. */
import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { renameSync } from 'node:fs'
import { join } from 'node:path'
import { eventually } from '../../../test/support/eventually.ts'
import { systemClock } from '../../lib/clock.ts'
import { newId } from '../../lib/ids.ts'
import { silentLog } from '../../lib/log/log.ts'
import { controlClient } from '../agent/control-client.ts'
import { ControlConnection } from '../agent/control-connection.ts'
import { Freshness } from '../agent/freshness.ts'
import { Outbox } from '../outbox/outbox.ts'
import { systemFreeBytes, systemWrite } from '../outbox/segment.ts'
import { TemporaryFleet } from '../testing/temporary-fleet.ts'
import { FileStateView } from './state-view.ts'

const nothing = () => undefined

test('asks a replica that lags for another sync from time to time, and not at once', async () => {
  const fleet = await TemporaryFleet.start()
  const copyState = (name: string): string => {
    using state = new Database(fleet.stateFile)
    state.run('vacuum into ?', [join(fleet.directory, name)])
    return join(fleet.directory, name)
  }
  const stateFile = copyState('behind.db')
  const view = new FileStateView(stateFile, nothing)
  const outbox = new Outbox({
    directory: join(fleet.directory, 'outbox'),
    ...{ segmentBytes: 65_536, limitBytes: 2 ** 20, keepMs: 0, bootId: 'boot' },
    ...{ write: systemWrite, freeBytes: systemFreeBytes, clock: systemClock, hostTime: Date.now, log: silentLog },
  })
  let syncs = 0
  const session = new ControlConnection({
    ...{ client: controlClient(fleet.url, fetch), runtimeToken: fleet.runtimeToken, instanceId: newId(), worker: 0 },
    ...{ process: newId(), outbox, view, clock: systemClock, log: silentLog, random: () => 0 },
    ...{ freshness: new Freshness(systemClock, null), heartbeatEveryMs: 60_000, lingerMs: 3, notifiesStateRead: true },
    ...{ onRevoked: nothing, onEndRequests: nothing, onTime: nothing, onFresh: nothing, onRefused: nothing },
    ...{ onSlotsRecalled: nothing, onConnected: nothing, onAgreed: nothing, onRecalled: nothing, onFenced: nothing },
    ...{ onRetired: nothing, onDeregistering: nothing, onStaleness: nothing },
    ...{ forkedAfter: () => null, agreedEvent: () => 0, staleAfterMs: () => 300_000, targets: () => [] },
    onBootstrap: async () => true,
    onForked: async () => undefined,
    onRestored: async () => undefined,
    onReplicaBehind() {
      syncs += 1
      setTimeout(() => session.stateRead(), 2)
    },
  })
  session.start()
  await eventually(() => session.connected)
  const { version } = fleet.change(() => undefined)
  await eventually(() => syncs > 0)
  await Bun.sleep(300)
  expect(syncs).toBeLessThan(5)
  renameSync(copyState('current.db'), stateFile)
  session.stateRead()
  await eventually(() => view.version === version)
  await session.stop(100)
  await outbox.end()
  view.close()
  await fleet.remove()
})
