/** Checks of a gateway host over the facts of host-facts.ts. A part that is not installed has no finding. */
import { z } from 'zod'
import { minFreeBytes } from '../fleet/outbox/space.ts'
import { staleAfterMs } from '../fleet/protocol/wire.ts'
import { timestamp } from '../lib/clock.ts'
import { version } from '../version.ts'
import { isControlPlane } from './control-plane-checks.ts'
import { type Checks, type Finding, fail, ok, warn } from './finding.ts'
import type { HostFacts } from './host-facts.ts'

const readinessSchema = z.object({
  ok: z.boolean(),
  reason: z.string().optional(),
  warning: z.string().optional(),
  staleness_seconds: z.number().optional(),
})

/** Beyond this age the gateway itself warns that its replica is stale. */
const oldNewsMs = 60_000
/** A timestamp further ahead than this comes from another clock. */
const aheadMs = 5000

const runs = ({ holders }: HostFacts): boolean => holders.gateway.kind === 'held'

export const hostChecks = {
  directory({ directory }) {
    if (directory.missing === null) return ok(`The data directory is ${directory.path}`)
    return fail(
      `The data directory ${directory.path} cannot be used: ${directory.missing}`,
      'Set the right one with --data, or start once to create it',
    )
  },

  mode({ directory: { missing, mode, path } }) {
    if (missing !== null) return null
    if ((mode & 0o077) === 0) return ok(`It is closed to other users, mode ${octal(mode)}`)
    return warn(`It is open to other users, mode ${octal(mode)}`, `chmod 700 ${path}`)
  },

  owner({ directory: { missing, owner, user, path } }) {
    if (missing !== null) return null
    if (owner === user) return ok('It belongs to this user')
    return warn(
      `It belongs to user ${owner}, and doctor runs as ${user}: what follows may hold for that other user only`,
      `Run doctor as the user that Gatehouse runs as, or chown -R that user ${path}`,
    )
  },

  writable({ directory: { missing, writable } }) {
    if (missing !== null) return null
    if (writable) return ok('It can be written')
    return fail('It cannot be written', 'Give the user the right, or mount the file system for writing')
  },

  space(facts) {
    const { missing, free } = facts.directory
    if (missing !== null || free === null) return null
    if (free < minFreeBytes) return shortOfSpace(facts, free)
    const { worker, workers, settings } = facts
    const wanted = [worker, ...workers.map((worker) => worker.worker)].reduce(
      (sum, each) => sum + Math.max(0, settings.outbox_limit_bytes - outboxBytes(each)),
      0,
    )
    const free_ = `${mebibytes(free)} are free`
    if (free >= wanted) return ok(`The disk has room for all of the outbox: ${free_}`)
    return warn(
      `The outbox may grow by ${mebibytes(wanted)}, and ${free_}`,
      'Make room, or lower SERVICE_OUTBOX_LIMIT_BYTES',
    )
  },

  running({ directory, holders: { supervisor, gateway }, role }) {
    if (directory.missing !== null) return null
    if (gateway.kind === 'held') return ok(`A gateway runs here, process ${gateway.pid}`)
    if (gateway.kind === 'unknown') return warn('Whether a gateway runs here cannot be told', 'Look at its listener')
    const command = role === 'everything' ? 'gatehouse up' : 'gatehouse gateway'
    if (supervisor.kind === 'held') {
      return fail(
        `No gateway runs here, though its supervisor does, process ${supervisor.pid}`,
        'Read its log, which says why the gateway ends or what it waits for',
      )
    }
    return fail('Nothing runs here', `Start it with ${command}; what else stands here says what a start would meet`)
  },

  fenced({ worker, place }) {
    if (worker === null || worker.fencedAt === null) return null
    return fail(
      `Another process took over this instance, at ${timestamp(worker.fencedAt)}: the data directory was copied, and both ran`,
      `Let one of them run only, or remove ${place}/worker in one of the two: its next start is another instance`,
    )
  },

  instance({ worker, place }) {
    if (worker?.instance.kind !== 'damaged') return null
    return fail(
      `${place}/worker/instance.json is damaged: the gateway does not start`,
      'Remove it: the next start is another instance; what it held of limits stays spent until usage release frees it',
    )
  },

  bootstrap({ worker, controlPlane }) {
    if (worker === null) return null
    const away = controlPlane?.health.kind !== 'answered'
    if (worker.kept === 'opens') return ok('The stored bootstrap can be opened with SERVICE_API_TOKEN')
    if (worker.kept === 'unchecked') return null
    const what =
      worker.kept === 'none'
        ? 'No bootstrap is stored'
        : 'The stored bootstrap cannot be opened with SERVICE_API_TOKEN: it belongs to another token, or the file is damaged'
    const todo = 'A start needs the control plane, which sends it again; check SERVICE_API_TOKEN'
    return away ? fail(what, todo) : warn(what, todo)
  },

  replica({ worker, controlPlane }) {
    const replica = worker?.replica ?? null
    if (replica === null) return null
    const anew =
      'Nothing to do: a running gateway copies the state again once its control plane and primary are reachable'
    const level = controlPlane?.health.kind === 'answered' ? warn : fail
    if (replica.kind === 'unreadable') {
      return fail(
        `gateway/replica cannot be read: ${replica.reason}`,
        'Give the user the right, or remove it while nothing runs: it is copied again',
      )
    }
    if (replica.kind === 'none') return level('There is no replica of the state yet', anew)
    if (replica.kind === 'damaged')
      return level(`Copy ${replica.folder} of the state is damaged: ${replica.fault}`, anew)
    const { state } = replica
    if (state.kind === 'read' && isTooNew(state)) return tooNew(state)
    if (state.kind === 'read') return ok(`Copy ${replica.folder} of the state is sound, at version ${state.version}`)
    return level(`Copy ${replica.folder} of the state cannot be read: ${state.reason}`, anew)
  },

  faults: ({ faults }) => faults,

  state({ state, faults }) {
    if (state === null) return null
    // Reported already, with the remedy.
    if (state.kind === 'unreadable' && faults.some(({ level }) => level === 'fail')) return null
    if (state.kind === 'read' && isTooNew(state)) return tooNew(state)
    if (state.kind === 'read') return ok(`The state is at version ${state.version}`)
    return fail(
      `state.db cannot be read: ${state.reason}`,
      'Restore state.db and ledger.db together from a backup, while nothing runs',
    )
  },

  freshness(facts) {
    const { worker, now, settings, controlPlane, gateway } = facts
    if (worker === null) return null
    const reachable = controlPlane?.health.kind === 'answered'
    const said = gateway?.readiness.kind === 'answered' ? readinessSchema.safeParse(gateway.readiness.body).data : null
    const age = said?.staleness_seconds ?? null
    const freshAt = age === null ? worker.freshAt : now - age * 1000
    if (freshAt === null)
      return reachable
        ? null
        : fail('The replica was never current since the first start, or since it deregistered', 'Reach it first')
    if (freshAt > now + aheadMs) {
      return warn('The replica’s timestamp is in the future, so it does not count', "Set this host's clock")
    }
    const until = freshAt + staleAfterMs(worker.maxStalenessSeconds ?? settings.max_staleness_seconds)
    const last = `The replica was last current at ${timestamp(freshAt)}`
    if (!runs(facts) && reachable) return ok(`${last}; a start updates it`)
    if (until > now && now - freshAt < oldNewsMs) {
      return ok(`${last}: it serves until ${timestamp(until)} without an update`)
    }
    if (until > now) {
      return warn(`${last}: it serves until ${timestamp(until)}, then refuses`, 'Make the control plane reachable')
    }
    return fail(
      `${last}, which is too old: requests are refused since ${timestamp(until)}`,
      'Make the control plane reachable, and check that it reaches its primary',
    )
  },

  outbox({ worker, gateway, controlPlane }) {
    const outbox = worker?.outbox ?? null
    if (outbox === null) return null
    if (outbox.kind === 'unreadable') {
      return fail(
        `The outbox cannot be read: ${outbox.reason}`,
        'Give the user the right; if it holds other files, keep a copy and remove it while nothing runs',
      )
    }
    if (outbox.kind === 'written') {
      const unacknowledged = gateway?.unacknowledged ?? null
      const size = `The outbox takes ${mebibytes(outbox.bytes)}`
      if (unacknowledged === null || unacknowledged === 0)
        return ok(`${size}${unacknowledged === 0 ? ', all of it reported' : ''}`)
      const what = `${size}; ${unacknowledged} events are not acknowledged yet`
      return controlPlane?.health.kind === 'answered'
        ? ok(what)
        : warn(what, 'They are shipped when the control plane is reachable')
    }
    const { events, agreed, open, bytes } = outbox
    const left =
      agreed === null ? `it ends with event ${events}` : `${Math.max(0, events - agreed)} not acknowledged yet`
    const what = `The outbox takes ${mebibytes(bytes)}; ${left}${open > 0 ? `, ${open} requests were cut off` : ''}`
    const nothing = open === 0 && (agreed === null || agreed >= events)
    return nothing
      ? ok(what)
      : warn(what, 'Start the gateway here again: it reports them. Keep the directory until then')
  },

  damage({ worker, place }) {
    if (worker?.outbox?.kind !== 'stopped' || worker.outbox.damage === null) return null
    const { segment, offset } = worker.outbox.damage
    return fail(
      `The outbox is damaged in segment ${segment} at byte ${offset}: the next start drops what follows`,
      `Copy ${place}/worker/outbox before that start, if the events matter; events verify then says what is missing`,
    )
  },

  gateway({ gateway, holders, settings }) {
    if (gateway === null) return null
    if (gateway.readiness.kind === 'silent') {
      if (holders.gateway.kind !== 'held') return null
      return fail(
        `The gateway does not answer at ${gateway.url}: ${gateway.readiness.reason}`,
        'Set its address with --gateway-listen; if it is right, read its log',
      )
    }
    const said = readinessSchema.safeParse(gateway.readiness.body).data
    if (said === undefined) {
      return fail(`What answers at ${gateway.url} is no gateway`, 'Set its address with --gateway-listen')
    }
    if (!said.ok)
      return fail(`The gateway is not ready: ${said.reason ?? 'it does not say why'}`, 'See what else failed')
    if (said.warning === undefined) return ok('The gateway is ready')
    const after = settings.max_staleness_seconds
    return warn(`The gateway is ready, but: ${said.warning}`, `Reach the primary; it serves ${after} s without`)
  },

  address({ controlPlane, role }) {
    if (controlPlane === null) {
      return fail(
        'The address of the control plane is not configured',
        "Set SERVICE_API_URL as in the gateway's environment",
      )
    }
    if (controlPlane.private) return role === 'everything' ? null : ok('Its address uses https or loopback')
    return fail(
      `The control plane's address ${controlPlane.url} is neither https nor of this host: a gateway refuses it`,
      'Put a TLS proxy in front of the control plane and set SERVICE_API_URL to its address',
    )
  },

  token({ controlPlane, role }) {
    if (controlPlane === null || role === 'everything' || !isControlPlane(controlPlane)) return null
    const { caller } = controlPlane
    const name = 'Set SERVICE_API_TOKEN to a runtime token in force: token create --purpose gateway-runtime'
    if (caller.kind === 'none') {
      return warn('There is no token to check', "Run doctor with SERVICE_API_TOKEN of the gateway's environment")
    }
    if (caller.kind === 'refused') {
      return fail(`The control plane refuses the token: ${caller.status} ${caller.code}`, name)
    }
    if (caller.kind !== 'known') return null
    if (caller.permissions.includes('runtime:connect'))
      return ok("The control plane takes the token as a gateway's own")
    return fail("The token is good, but none of a gateway's: it has no permission runtime:connect", name)
  },
} satisfies Checks<HostFacts>

const outboxBytes = (worker: HostFacts['worker']): number => {
  const outbox = worker?.outbox ?? null
  return outbox !== null && 'bytes' in outbox ? outbox.bytes : 0
}

/**
 * The outbox reserves space from which a gateway serves on a full disk; only a running gateway knows how much is left.
 */
function shortOfSpace({ gateway, worker, workers, role }: HostFacts, free: number): Finding[] {
  const room = 'Make room on the disk of the data directory'
  const has = [worker, ...workers.map((worker) => worker.worker)].reduce((sum, each) => sum + outboxBytes(each), 0)
  const what = `The disk is full, ${mebibytes(free)} are free: the outbox stays at the ${mebibytes(has)} that it has`
  const said =
    gateway?.readiness.kind === 'answered' ? readinessSchema.safeParse(gateway.readiness.body).data : undefined
  const ofOutbox =
    said === undefined
      ? fail(`${what}, and a gateway that starts refuses new requests once those are full`, room)
      : said.ok
        ? warn(`${what}; the gateway serves until those are full, then refuses new requests`, room)
        : fail(`${what}, and the gateway is not ready`, room)
  if (role === 'gateway') return [ofOutbox]
  return [ofOutbox, warn("The control plane's databases are on this disk: they may take no more", room)]
}

const isTooNew = ({ readsFrom }: { readsFrom: string }): boolean => Bun.semver.order(readsFrom, version) > 0
const tooNew = ({ readsFrom }: { readsFrom: string }) =>
  fail(`The state is for version ${readsFrom} or later, and this is ${version}`, 'Upgrade Gatehouse on this host')

const octal = (mode: number): string => `0${mode.toString(8)}`
const mebibytes = (bytes: number): string => `${(bytes / 1024 / 1024).toFixed(1)} MiB`
