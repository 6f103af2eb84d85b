/** Checks of an installation with an operator's token. */
import { timestamp } from '../lib/clock.ts'
import { version } from '../version.ts'
import { type Check, type Checks, type Finding, fail, ok, warn } from './finding.ts'
import type { InstallationFacts, WorkerFacts } from './installation-facts.ts'

const dayMs = 86_400_000
/** How long gateways keep shipped events by default. */
const keptMs = dayMs

/** From when on the oldest record that a sink has not delivered is worth a warning, as the alert sink_lag has it. */
const lateMs = 300_000
/** From when on it is a failure. */
const veryLateMs = 2 * 3_600_000

export const installationChecks: Checks<InstallationFacts> = {
  token({ controlPlane: { caller, private: encrypted } }) {
    if (caller.kind === 'none') {
      return warn('There is no token, so only public endpoints were checked', 'Set SERVICE_API_TOKEN, or auth login')
    }
    if (caller.kind === 'refused' && caller.status >= 500) {
      return fail(
        `The token could not be checked: the control plane answers ${caller.status} ${caller.code}`,
        'Its log names the database that does not answer or has lost its tables: start or restore that database',
      )
    }
    if (caller.kind === 'refused') {
      return fail(
        `The token is refused: ${caller.status} ${caller.code}`,
        'Set SERVICE_API_TOKEN to a token of this installation',
      )
    }
    if (caller.kind !== 'known') return null
    if (caller.permissions.includes('runtime:connect')) {
      return fail("The token is a gateway's own", 'Use a token for operators; on its host, use doctor --data DIR')
    }
    const clear = warn('The token crosses the network in clear text', 'Reach the control plane over https')
    const may = caller.permissions.length === 0 ? 'nothing' : caller.permissions.join(', ')
    const usable = ok(`The token is usable, with the roles ${caller.roles.join(', ') || 'none'}: ${may}`)
    return encrypted ? usable : [usable, clear]
  },

  workers({ controlPlane, workers, now }) {
    const { caller } = controlPlane
    if (caller.kind !== 'known' || caller.permissions.includes('runtime:connect')) return null
    if (workers === null) {
      const why = caller.permissions.includes('catalog:read')
        ? "The control plane's log says which database does not answer, or has lost its tables"
        : 'Use a token that holds catalog:read'
      return warn('The workers of gateways cannot be read', why)
    }
    const present = workers.filter(({ left_at }) => left_at === null)
    const forgotten = present.filter((worker) => !worker.connected && silentFor(worker, now) > dayMs)
    const troubled = present
      .filter((worker) => !forgotten.includes(worker))
      .flatMap((worker) => workerFindings(worker, now))
    const connected = present.filter((worker) => worker.connected)
    return [
      connected.length === 0
        ? warn('No gateway is connected', 'Start one; on its host, doctor --data DIR says why it does not')
        : ok(`Gateways are connected by ${counted(connected.length, 'worker')}`),
      ...troubled,
      ...(forgotten.length === 0
        ? []
        : [
            warn(
              `Silent for more than a day, or never heard of: ${names(forgotten)}`,
              'Where a host is gone for good, usage release WORKER frees what it held of limits',
            ),
          ]),
    ]
  },

  restored({ restores, takenOver, now }) {
    const last = Math.max(...restores)
    const forgotten = warn(
      `The ledger was restored from an older copy: at ${timestamp(Math.max(0, ...takenOver))} it took ${counted(takenOver.length, 'token')} over from the state, as far as that knows them`,
      'Rename or revoke those that token list calls restored …; people and teams made since the copy are to be made again',
    )
    const ofLedger = takenOver.length === 0 ? [] : [forgotten]
    if (restores.length === 0) return ofLedger
    const ofState = warn(
      `The state was restored from an older copy at ${timestamp(last)}: ${counted(restores.length, 'token')} that had ended came back and was revoked again`,
      `What else was changed between that copy and then is lost: narrowed tokens, policies, limits, the catalog. Gateways keep ${keptMs / 3_600_000} h, so of older revocations only the ledger told: compare them by events export --since ${Math.ceil((now - last) / dayMs) + 2}d`,
    )
    return [ofState, ...ofLedger]
  },

  pending_reconciliation({ holders, workers, now }) {
    const pending = (holders ?? []).filter((worker) => worker.pending_reconciliation)
    if (pending.length === 0) return null
    const gone = pending.filter(({ worker }) =>
      workers?.some((known) => known.worker === worker && known.left_at !== null),
    )
    const left =
      gone.length === 0
        ? ''
        : `; ${names(gone)} had deregistered when the copy was made: ignore them unless they were started again since`
    const older = pending.filter(({ last_heartbeat_at }) => now - Date.parse(last_heartbeat_at) > keptMs)
    const lost =
      older.length === 0
        ? ''
        : `; of ${names(older)}, silent for more than a day, events that only the lost part had may be gone`
    return fail(
      `The ledger was restored, and nothing is granted of limits before these have said what they hold: ${names(pending)}${left}${lost}`,
      'Start those gateways; where they are gone for good, or were replaced by others, usage resume --yes',
    )
  },

  excesses({ excesses, providers }) {
    return (excesses ?? []).slice(0, mostNamed).map(({ provider_id: id, model, excess, at }) => {
      const name = providers?.find((provider) => provider.id === id)?.name ?? id
      return warn(
        `Provider ${name} charged $${excess} more for a request to ${model} at ${at} than its list price allows: this is added to the bound of each later request`,
        `Correct the price of the model; then usage forget-excess ${id} ${model}`,
      )
    })
  },

  rates({ absent }) {
    return (absent ?? [])
      .slice(0, mostNamed)
      .map(({ account, absent: slots, absent_until }) =>
        warn(
          `${slots} a minute of ${account} are held until ${absent_until} by a gateway that does not answer, and refused to others`,
          'Start that gateway on its data directory, or wait: they come back by themselves',
        ),
      )
  },

  lost({ holders }) {
    const lost = (holders ?? []).filter(
      ({ lost_at, released_at, held }) => lost_at !== null && released_at === null && held.length > 0,
    )
    return lost
      .slice(0, mostNamed)
      .map(({ worker, lost_at, held }) =>
        warn(
          `Worker ${worker} is lost since ${lost_at} with shares of ${counted(held.length, 'account')}, which stay spent: ${first(held)}`,
          `Start that gateway; where it is gone for good, usage release ${worker} --yes`,
        ),
      )
  },

  sinks({ sinks }) {
    return (sinks ?? [])
      .filter(({ state, lag_seconds }) => state !== 'disabled' && lag_seconds * 1000 >= lateMs)
      .toSorted((left, right) => right.lag_seconds - left.lag_seconds)
      .slice(0, mostNamed)
      .map(({ name, state, lag_records, lag_seconds, error }) => {
        const why = state === 'failing' && error !== null ? `: ${error}` : ''
        const told = lag_seconds * 1000 >= veryLateMs ? fail : warn
        return told(
          `The sink ${name} has not delivered ${counted(lag_records, 'record')}, the oldest for ${Math.floor(lag_seconds / 60)} minutes${why}`,
          'sink list shows how it stands, and sink test ID tries its receiver; what retention removes before it is delivered is lost to the sink',
        )
      })
  },

  keys: (facts) => keysToRotate(facts),
}

const counted = (count: number, what: string): string => `${count} ${what}${count === 1 ? '' : 's'}`
/** Accounts and workers that get a line of their own; there may be very many. */
const mostNamed = 20
const first = (held: readonly { account: string }[]): string =>
  `${held
    .slice(0, 3)
    .map(({ account }) => account)
    .join(', ')}${held.length > 3 ? ', …' : ''}`
const names = (workers: readonly { worker: string }[]): string => workers.map(({ worker }) => worker).join(', ')

const silentFor = ({ last_heartbeat_at }: WorkerFacts, now: number): number =>
  last_heartbeat_at === null ? Number.POSITIVE_INFINITY : now - Date.parse(last_heartbeat_at)

function workerFindings(worker: WorkerFacts, now: number): Finding[] {
  const { gateway_name, serves_until } = worker
  const named = `Worker ${worker.worker} of ${gateway_name}`
  const other =
    worker.version === '' || worker.version === version
      ? []
      : [warn(`${named} is of version ${worker.version}, this is ${version}`, 'Upgrade that gateway')]
  if (!worker.connected) {
    const look = 'On its host, doctor --data DIR says why'
    const stale = serves_until === null || Date.parse(serves_until) <= now
    const reach = stale
      ? fail(`${named} is unreachable, and refuses requests if it runs: its replica is too old`, look)
      : warn(`${named} is unreachable: it serves by what it knows until ${serves_until}`, look)
    return [reach, ...other]
  }
  if (worker.acknowledged_version >= worker.state_version) return other
  const behind = `${named} is behind: at version ${worker.acknowledged_version} of ${worker.state_version}`
  return [warn(behind, 'Check again in a few seconds; if it stays, run doctor --data DIR on its host'), ...other]
}

/** The holder of a revoked runtime token may have the provider keys of its gateway (fleet/README.md, Trust). */
const keysToRotate: Check<InstallationFacts> = ({ revoked, gateways, providers, keyChanges }) => {
  if (revoked === null || gateways === null || providers === null) return null
  return revoked.flatMap(({ id, name, bindings, revocation }) => {
    const at = Date.parse(revocation?.at ?? '')
    const gateway = gateways.find((found) => found.id === bindings.gateway_id)
    const exposed = providers.filter(
      (provider) =>
        (provider.has_api_key || provider.header_names.length > 0) &&
        (gateway?.providers ?? null)?.includes(provider.name) !== false &&
        Date.parse(provider.created_at) < at &&
        (keyChanges.get(provider.id) ?? 0) < at,
    )
    if (exposed.length === 0) return []
    return [
      warn(
        `The runtime token ${name} (${id}) was revoked at ${revocation?.at}; its gateway, ${gateway?.name ?? 'which is deleted'}, had the keys of ${exposed.map((provider) => provider.name).join(', ')}`,
        "Rotate them at the provider and give the new ones by provider update, unless that was done since (an owner's session sees whether)",
      ),
    ]
  })
}
