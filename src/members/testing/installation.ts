/** An installation for tests: migrated files, a first start, and a fleet that answers as if nobody were connected. */
import { randomBytes } from 'node:crypto'
import { settingsSchema } from '../../config.ts'
import { createRecorder } from '../../events/change.ts'
import type { Recorder } from '../../events/recorder.ts'
import { permissionsOf } from '../../identity/permissions.ts'
import { anonymous, type Principal } from '../../identity/principal.ts'
import { type Clock, timestamp } from '../../lib/clock.ts'
import { newId } from '../../lib/ids.ts'
import { silentLog } from '../../lib/log/log.ts'
import { loadMasterKey } from '../../store/keys/load-master-key.ts'
import type { Fleet, Head } from '../../store/propagation.ts'
import { type TemporaryStore, temporaryStore } from '../../store/testing/store.ts'
import type { TokenDependencies } from '../../tokens/dependencies.ts'
import { alertThresholds } from '../../tokens/limits/alerts.ts'
import { uncounted } from '../../tokens/limits/depletion.ts'
import { type FirstStartOptions, firstStart, type Installation } from '../first-start.ts'

/** A clock that a test moves. */
export function settableClock(start = Date.parse('2026-01-02T03:04:05.678Z')): Clock & { advance(by: number): void } {
  let now = start
  return {
    now: () => now,
    monotonic: () => now,
    advance(by) {
      now += by
    },
  }
}

export interface TemporaryInstallation {
  store: TemporaryStore
  options: FirstStartOptions
  deps: TokenDependencies
  installation: Installation
  clock: ReturnType<typeof settableClock>
  /** What gateways were told. */
  announced: { head: Head; revoked: readonly string[] }[]
  /** An unbound owner, as the administrator token is one. */
  owner: Principal
  teamId: string
  gatewayId: string
  userId: string
}

export interface PreparedInstallation extends Pick<TemporaryInstallation, 'store' | 'options' | 'clock' | 'announced'> {
  recorder: Recorder
}

/** Everything but the first start. */
export async function prepareInstallation(): Promise<PreparedInstallation> {
  const store = await temporaryStore()
  const clock = settableClock()
  const { state, ledger } = store
  const masterKey = await loadMasterKey({ settings: {}, dataDirectory: store.directory, ledger, randomBytes })
  const announced: TemporaryInstallation['announced'] = []
  const announce: Fleet['announce'] = (head, revoked) => void announced.push({ head, revoked })
  const recorder = createRecorder({ state, ledger, announce, clock, log: silentLog })
  const options = { state, ledger, recorder, masterKey, clock, newId, randomBytes }
  return { store, options, clock, announced, recorder }
}

export async function temporaryInstallation(): Promise<TemporaryInstallation> {
  const { store, options, clock, announced, recorder } = await prepareInstallation()
  const { state, ledger } = store
  const installation = await firstStart(options)
  const fleet: Fleet = {
    announce: () => undefined,
    propagation: async () => ({
      connected: 0,
      acknowledged: 0,
      unreachable: [],
      effective_by: timestamp(clock.now()),
    }),
  }
  const only = async (database: typeof state, table: string) => {
    const [row] = await database.read<{ id: string }>(`select id from ${table}`)
    return row?.id ?? ''
  }
  return {
    store,
    options,
    clock,
    announced,
    installation,
    deps: {
      ...{ state, ledger, recorder, fleet, clock, newId, randomBytes, masterKey: options.masterKey },
      depletion: uncounted,
      alerts: alertThresholds(settingsSchema.parse({})),
    },
    owner: { ...anonymous, kind: 'token', name: 'token:test', roles: ['owner'], permissions: permissionsOf(['owner']) },
    teamId: await only(ledger, 'teams'),
    userId: await only(ledger, 'users'),
    gatewayId: await only(state, 'gateways'),
  }
}
