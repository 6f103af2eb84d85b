/** Each finding of a gateway's host once, by facts: what is said, and how bad it is. */
import { expect, test } from 'bun:test'
import { settingsSchema } from '../config.ts'
import { version } from '../version.ts'
import { controlPlaneChecks } from './control-plane-checks.ts'
import type { ControlPlaneFacts } from './control-plane-facts.ts'
import { examine } from './finding.ts'
import type { GatewayDirectoryFacts } from './gateway-directory.ts'
import { hostChecks } from './host-checks.ts'
import type { HostFacts } from './host-facts.ts'
import type { Answer } from './probe.ts'
import { examineWorkers } from './worker-checks.ts'

const now = Date.parse('2026-05-01T12:00:00Z')
const mebibyte = 1024 * 1024
const silent: Answer = { kind: 'silent', reason: 'no answer within 3 s' }
const says = (body: unknown, status = 200): Answer => ({ kind: 'answered', status, text: '', body, aheadMs: 0 })

const controlPlane: ControlPlaneFacts = {
  url: 'https://gatehouse.example.com',
  private: true,
  health: says({ version: '0.2.0' }),
  readiness: says({ status: 'ready' }),
  caller: { kind: 'known', tokenId: 'token', roles: ['runtime'], permissions: ['runtime:connect'] },
}
const away: ControlPlaneFacts = { ...controlPlane, health: silent, readiness: silent, caller: { kind: 'silent' } }

const worker: GatewayDirectoryFacts = {
  instance: { kind: 'known', id: 'instance' },
  kept: 'opens',
  maxStalenessSeconds: 300,
  freshAt: now - 5000,
  fencedAt: null,
  outbox: { kind: 'written', bytes: 8 * mebibyte },
  replica: { kind: 'sound', folder: 2, state: { kind: 'read', version: 7, readsFrom: '0.2.0' } },
}

const sound: HostFacts = {
  now,
  directory: { path: '/data', missing: null, mode: 0o700, owner: 7, user: 7, writable: true, free: 4096 * mebibyte },
  role: 'gateway',
  holders: { supervisor: { kind: 'held', pid: 11 }, gateway: { kind: 'held', pid: 12 } },
  worker,
  place: 'gateway',
  workers: [],
  faults: [],
  state: null,
  gateway: { url: 'http://127.0.0.1:7080', readiness: says({ ok: true, staleness_seconds: 0.4 }), unacknowledged: 0 },
  controlPlane,
  settings: settingsSchema.parse({}),
}
const stopped: HostFacts = {
  ...sound,
  holders: { supervisor: { kind: 'free' }, gateway: { kind: 'free' } },
  gateway: null,
}

const directory = (change: Partial<HostFacts['directory']>): HostFacts => ({
  ...sound,
  directory: { ...sound.directory, ...change },
})
const withWorker = (change: Partial<GatewayDirectoryFacts>, facts = sound): HostFacts => ({
  ...facts,
  worker: { ...worker, ...change },
})
const stoppedOutbox = { kind: 'stopped', bytes: mebibyte, events: 9, open: 0, agreed: 9, damage: null } as const

/** What one check says: `level what`, each finding; nothing is ''. */
function said(check: keyof typeof hostChecks, facts: HostFacts): string {
  const found = examine(hostChecks, facts).filter((finding) => finding.check === check)
  expect(found.every(({ level, todo }) => (level === 'ok') === (todo === undefined))).toBe(true)
  return found.map(({ level, what }) => `${level} ${what}`).join('\n')
}

test('reports ok for every check of a healthy host', () => {
  const findings = examine(hostChecks, sound)
  expect(findings.filter(({ level }) => level !== 'ok')).toEqual([])
  expect(findings.map(({ check }) => check)).toEqual([
    'directory',
    'mode',
    'owner',
    'writable',
    'space',
    'running',
    'bootstrap',
    'replica',
    'freshness',
    'outbox',
    'gateway',
    'address',
    'token',
  ])
})

test('reports a missing directory as the only finding', () => {
  const facts = { ...stopped, worker: null, directory: { ...sound.directory, missing: 'there is none' } }
  expect(said('directory', facts)).toBe('fail The data directory /data cannot be used: there is none')
  const others = examine(hostChecks, facts).map(({ check }) => check)
  expect(others).toEqual(['directory', 'address', 'token'])
})

test('fails a directory that others can read, that belongs to another user or that is not writable', () => {
  expect(said('mode', directory({ mode: 0o755 }))).toBe('warn It is open to other users, mode 0755')
  expect(said('owner', directory({ owner: 0 }))).toContain('warn It belongs to user 0, and doctor runs as 7')
  expect(said('writable', directory({ writable: false }))).toBe('fail It cannot be written')
})

test('fails a disk without room for a full outbox', () => {
  expect(said('space', directory({ free: 7 * mebibyte }))).toContain('warn The outbox may grow by 1016.0 MiB')
  expect(said('space', directory({ free: 1015 * mebibyte }))).toContain('warn The outbox may grow by 1016.0 MiB')
  expect(said('space', directory({ free: 1016 * mebibyte }))).toContain('ok ')
  expect(said('space', directory({ free: null }))).toBe('')
})

test('reports a full disk when the gateway says that it serves from its outbox reserve', () => {
  const full = directory({ free: 0 })
  expect(said('space', full)).toBe(
    'warn The disk is full, 0.0 MiB are free: the outbox stays at the 8.0 MiB that it has; the gateway serves until those are full, then refuses new requests',
  )
  const refusing = { url: '', readiness: says({ ok: false, reason: 'The outbox is full' }, 503), unacknowledged: 9 }
  expect(said('space', { ...full, gateway: refusing })).toStartWith('fail The disk is full')
  expect(said('space', { ...full, gateway: null })).toContain('fail The disk is full')
  expect(said('space', { ...full, role: 'everything' })).toContain(
    "\nwarn The control plane's databases are on this disk",
  )
})

test('reports which process runs, or that none does', () => {
  expect(said('running', stopped)).toBe('fail Nothing runs here')
  const waiting: HostFacts = { ...stopped, holders: { ...stopped.holders, supervisor: { kind: 'held', pid: 11 } } }
  expect(said('running', waiting)).toContain('fail No gateway runs here, though its supervisor does, process 11')
  const unknown: HostFacts = { ...stopped, holders: { supervisor: { kind: 'unknown' }, gateway: { kind: 'unknown' } } }
  expect(said('running', unknown)).toContain('warn Whether a gateway runs here cannot be told')
})

test('reports a copied directory whose instance another gateway took over', () => {
  expect(said('fenced', stopped)).toBe('')
  expect(said('fenced', withWorker({ fencedAt: now }, stopped))).toStartWith(
    'fail Another process took over this instance, at 2026-05-01T12:00:00.000Z: the data directory was copied',
  )
})

test('fails a damaged identity, because the gateway would not start', () => {
  expect(said('instance', withWorker({ instance: { kind: 'damaged' } }))).toContain('fail gateway/worker/instance.json')
  expect(said('instance', withWorker({ instance: { kind: 'none' } }))).toBe('')
})

test('checks the kept bootstrap only when the control plane is unreachable', () => {
  expect(said('bootstrap', withWorker({ kept: 'sealed' }))).toContain('warn The stored bootstrap cannot be opened')
  expect(said('bootstrap', withWorker({ kept: 'none' }))).toContain('warn No bootstrap is stored')
  expect(said('bootstrap', withWorker({ kept: 'none' }, { ...sound, controlPlane: away }))).toContain(
    'fail No bootstrap is stored',
  )
  expect(said('bootstrap', withWorker({ kept: 'unchecked' }))).toBe('')
})

test('reports a missing, damaged or unreadable replica of the state', () => {
  const replica = (found: GatewayDirectoryFacts['replica'], facts = sound) =>
    said('replica', withWorker({ replica: found }, facts))
  const fault = { kind: 'damaged', folder: 2, fault: 'state.db is missing' } as const
  expect(replica(fault)).toBe('warn Copy 2 of the state is damaged: state.db is missing')
  expect(replica(fault, { ...sound, controlPlane: away })).toContain('fail Copy 2')
  expect(replica({ kind: 'none' })).toBe('warn There is no replica of the state yet')
  expect(replica({ kind: 'unreadable', reason: 'EACCES' })).toBe('fail gateway/replica cannot be read: EACCES')
  const garbage = { kind: 'unreadable', reason: 'file is not a database' } as const
  expect(replica({ kind: 'sound', folder: 2, state: garbage })).toBe(
    'warn Copy 2 of the state cannot be read: file is not a database',
  )
})

test('fails an unreadable state beside its control plane', () => {
  const read = { kind: 'read', version: 4, readsFrom: '0.2.0' } as const
  expect(said('state', { ...sound, state: read })).toBe('ok The state is at version 4')
  expect(said('state', { ...sound, state: { kind: 'unreadable', reason: 'it has no head' } })).toBe(
    'fail state.db cannot be read: it has no head',
  )
})

test('reports a cause that prevents a start once, even when it is the unreadable state', () => {
  const faults = [{ level: 'fail', what: 'state.db is damaged', todo: 'Restore it' }] as const
  const facts = { ...sound, faults, state: { kind: 'unreadable', reason: 'file is not a database' } } as const
  expect(said('faults', facts)).toBe('fail state.db is damaged')
  expect(said('state', facts)).toBe('')
})

test('reports the age of the replica and until when the gateway may serve from it', () => {
  const gateway = { url: '', readiness: silent, unacknowledged: null }
  const at = (freshAt: number | null, facts: HostFacts = { ...sound, gateway }) =>
    said('freshness', withWorker({ freshAt }, facts))
  expect(at(now - 61_000)).toContain('warn The replica was last current at 2026-05-01T11:58:59.000Z')
  expect(at(now - 61_000)).toContain('it serves until 2026-05-01T12:03:59.000Z, then refuses')
  expect(at(now - 301_000)).toContain('fail The replica was last current at 2026-05-01T11:54:59.000Z, which is too old')
  expect(at(now + 60_000)).toContain('warn The replica’s timestamp is in the future')
  expect(at(now - 301_000, stopped)).toContain('ok The replica was last current')
  expect(at(now - 301_000, { ...stopped, controlPlane: away })).toContain('fail ')
  expect(at(null)).toBe('')
  expect(at(null, { ...stopped, controlPlane: away })).toBe(
    'fail The replica was never current since the first start, or since it deregistered',
  )
})

test('asks for an upgrade when only a later version can read the state', () => {
  const state = { kind: 'read', version: 4, readsFrom: '99.0.0' } as const
  const tooNew = `fail The state is for version 99.0.0 or later, and this is ${version}`
  expect(said('state', { ...sound, state })).toBe(tooNew)
  expect(said('replica', withWorker({ replica: { kind: 'sound', folder: 2, state } }))).toBe(tooNew)
})

test('fails a replica that is older than this gateway may serve from', () => {
  const facts = withWorker({ freshAt: now - 9000, maxStalenessSeconds: 6 })
  const running = {
    ...facts,
    gateway: { url: '', readiness: says({ ok: false, staleness_seconds: 9 }), unacknowledged: 0 },
  }
  expect(said('freshness', running)).toContain('which is too old')
})

test('reports no other finding for a server that is no control plane', () => {
  const health = says({ hello: 'world' }, 404)
  const other: ControlPlaneFacts = {
    ...controlPlane,
    health,
    caller: { kind: 'refused', status: 404, code: 'no code' },
  }
  expect(said('token', { ...sound, controlPlane: other })).toBe('')
  expect(examine(controlPlaneChecks, other).map(({ check }) => check)).toEqual(['reachable'])
})

test('prefers the replica age that the running gateway reports to the one on disk', () => {
  const readiness = says({ ok: true, staleness_seconds: 2 })
  const facts = { ...sound, gateway: { url: '', readiness, unacknowledged: 0 } }
  expect(said('freshness', withWorker({ freshAt: now - 301_000 }, facts))).toContain('ok ')
})

test('counts the events that wait in the outbox', () => {
  const unacknowledged = { ...sound, gateway: { url: '', readiness: silent, unacknowledged: 3 } }
  expect(said('outbox', unacknowledged)).toBe('ok The outbox takes 8.0 MiB; 3 events are not acknowledged yet')
  expect(said('outbox', { ...unacknowledged, controlPlane: away })).toContain('warn ')
  const left = (change: object) => said('outbox', withWorker({ outbox: { ...stoppedOutbox, ...change } }, stopped))
  expect(left({})).toBe('ok The outbox takes 1.0 MiB; 0 not acknowledged yet')
  expect(left({ agreed: 4 })).toBe('warn The outbox takes 1.0 MiB; 5 not acknowledged yet')
  expect(left({ open: 2, agreed: null })).toBe(
    'warn The outbox takes 1.0 MiB; it ends with event 9, 2 requests were cut off',
  )
  const unreadable = withWorker({ outbox: { kind: 'unreadable', reason: 'EACCES' } })
  expect(said('outbox', unreadable)).toBe('fail The outbox cannot be read: EACCES')
})

test('names segment and byte of outbox data that a start would drop', () => {
  expect(said('damage', withWorker({ outbox: stoppedOutbox }, stopped))).toBe('')
  const damage = { segment: 3, offset: 512 }
  expect(said('damage', withWorker({ outbox: { ...stoppedOutbox, damage } }, stopped))).toContain(
    'fail The outbox is damaged in segment 3 at byte 512',
  )
})

test('reports a gateway that hangs, is not ready or is another server', () => {
  const answering = (readiness: Answer) =>
    said('gateway', { ...sound, gateway: { url: 'http://127.0.0.1:7080', readiness, unacknowledged: 0 } })
  expect(answering(silent)).toContain('fail The gateway does not answer at http://127.0.0.1:7080: no answer')
  expect(answering(says({ ok: false, reason: 'The state is too old' }, 503))).toBe(
    'fail The gateway is not ready: The state is too old',
  )
  expect(answering(says({ ok: true, warning: 'No fresh news' }))).toContain('warn The gateway is ready, but: No fresh')
  expect(answering(says(undefined))).toBe('fail What answers at http://127.0.0.1:7080 is no gateway')
})

test('fails an unknown address, and one that sends secrets in clear text over a network', () => {
  expect(said('address', { ...sound, controlPlane: null })).toBe(
    'fail The address of the control plane is not configured',
  )
  const clear = { ...controlPlane, url: 'http://10.0.0.1:7070', private: false, caller: { kind: 'kept' } as const }
  expect(said('address', { ...sound, controlPlane: clear })).toContain('fail ')
})

test('fails a token that is not a valid runtime token', () => {
  const caller = (found: ControlPlaneFacts['caller']) =>
    said('token', { ...sound, controlPlane: { ...controlPlane, caller: found } })
  expect(caller({ kind: 'none' })).toContain('warn There is no token to check')
  expect(caller({ kind: 'refused', status: 401, code: 'tokens.expired' })).toBe(
    'fail The control plane refuses the token: 401 tokens.expired',
  )
  expect(caller({ kind: 'known', tokenId: 'x', roles: ['owner'], permissions: ['tokens:read'] })).toContain('fail ')
  expect(caller({ kind: 'silent' })).toBe('')
})

test('reports findings for each worker by number and ignores a worker that was removed', () => {
  const workerFacts = (index: number, change: Partial<HostFacts['workers'][number]> = {}) =>
    ({
      index,
      holder: { kind: 'held', pid: 20 + index },
      worker,
      place: `gateway/workers/${index}`,
      ...change,
    }) as const
  const workers = [
    workerFacts(1),
    workerFacts(2, { holder: { kind: 'free' }, worker: { ...worker, outbox: { ...stoppedOutbox, agreed: 4 } } }),
    workerFacts(3, { worker: { ...worker, instance: { kind: 'damaged' } } }),
    workerFacts(7, { holder: { kind: 'free' }, worker: { ...worker, outbox: stoppedOutbox } }),
  ]
  const facts = { ...sound, workers, settings: { ...sound.settings, gateway_workers: 4 } }
  const wrong = examineWorkers(facts).filter(({ level }) => level !== 'ok')
  expect(wrong.map(({ level, what }) => `${level} ${what}`)).toEqual([
    'fail Worker 2: it does not run, though the first does',
    'warn Worker 2: The outbox takes 1.0 MiB; 5 not acknowledged yet',
    'fail Worker 3: gateway/workers/3/worker/instance.json is damaged: the gateway does not start',
  ])
  const room = { ...sound.directory, free: 4500 * mebibyte }
  expect(said('space', { ...facts, directory: room })).toStartWith('warn The outbox may grow by ')
  expect(said('space', { ...sound, directory: room })).toStartWith('ok ')
})
