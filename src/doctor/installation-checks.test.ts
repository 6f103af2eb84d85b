/** Each finding of an installation once, by facts, and those of its control plane. */
import { expect, test } from 'bun:test'
import { controlPlaneChecks } from './control-plane-checks.ts'
import type { ControlPlaneFacts } from './control-plane-facts.ts'
import { examine, type NamedFinding } from './finding.ts'
import { installationChecks } from './installation-checks.ts'
import type { InstallationFacts, WorkerFacts } from './installation-facts.ts'
import type { Answer } from './probe.ts'

const now = Date.parse('2026-05-01T12:00:00Z')
const at = (secondsAgo: number): string => new Date(now - secondsAgo * 1000).toISOString()
const day = 86_400
const says = (body: unknown, status = 200, aheadMs: number | null = 0): Answer => ({
  ...{ kind: 'answered', status, text: '', body, aheadMs },
})

const controlPlane: ControlPlaneFacts = {
  url: 'https://gatehouse.example.com',
  private: true,
  health: says({ version: '0.2.0' }),
  readiness: says({ status: 'ready' }),
  caller: { kind: 'known', tokenId: 'token', roles: ['admin'], permissions: ['catalog:read', 'tokens:read'] },
}

const worker: WorkerFacts = {
  worker: 'gateway/instance/0',
  gateway_name: 'shop',
  version: '0.2.0',
  connected: true,
  acknowledged_version: 7,
  state_version: 7,
  last_heartbeat_at: at(1),
  serves_until: at(-299),
  left_at: null,
}

const provider = (name: string, change: object = {}) => ({
  ...{ id: `id of ${name}`, name, has_api_key: true, header_names: [], created_at: at(80 * day), ...change },
})

const holder = (name: string, change: object = {}) => ({
  ...{
    worker: name,
    last_heartbeat_at: at(60),
    lost_at: null,
    released_at: null,
    pending_reconciliation: false,
    held: [],
    ...change,
  },
})

const sound: InstallationFacts = {
  now,
  controlPlane,
  workers: [worker],
  holders: [],
  excesses: [],
  absent: [],
  revoked: [],
  gateways: [{ id: 'gateway', name: 'shop', providers: ['openai', 'spare'] }],
  providers: [provider('openai'), provider('spare'), provider('other')],
  sinks: [],
  keyChanges: new Map(),
  restores: [],
  takenOver: [],
}

const lines = (findings: readonly NamedFinding[], check: string): string => {
  const found = findings.filter((finding) => finding.check === check)
  expect(found.every(({ level, todo }) => (level === 'ok') === (todo === undefined))).toBe(true)
  return found.map(({ level, what }) => `${level} ${what}`).join('\n')
}
const said = (check: keyof typeof installationChecks, change: Partial<InstallationFacts>): string =>
  lines(examine(installationChecks, { ...sound, ...change }), check)
const saidOfPlane = (check: keyof typeof controlPlaneChecks, change: Partial<ControlPlaneFacts>): string =>
  lines(examine(controlPlaneChecks, { ...controlPlane, ...change }), check)
const caller = (found: ControlPlaneFacts['caller'], encrypted = true) =>
  said('token', { controlPlane: { ...controlPlane, caller: found, private: encrypted } })
const saidOfWorker = (change: Partial<WorkerFacts>): string =>
  said('workers', { workers: [worker, { ...worker, ...change }] })

test('reports ok for every check of a healthy installation', () => {
  const findings = [...examine(controlPlaneChecks, controlPlane), ...examine(installationChecks, sound)]
  expect(findings.map(({ level, check }) => `${level} ${check}`)).toEqual([
    'ok reachable',
    'ok version',
    'ok ready',
    'ok clock',
    'ok token',
    'ok workers',
  ])
})

test('reports a control plane that is unreachable, another server, another version, not ready or off the clock', () => {
  const silent = { kind: 'silent', reason: 'nothing listens there' } as const
  expect(saidOfPlane('reachable', { health: silent })).toContain('cannot be reached: nothing listens there')
  expect(saidOfPlane('reachable', { health: says('hello') })).toContain('fail What answers at')
  expect(saidOfPlane('version', { health: says({ version: '0.1.9' }) })).toBe(
    'warn It is of version 0.1.9, this is 0.2.0',
  )
  expect(saidOfPlane('ready', { readiness: says({ reason: 'It waits' }, 503) })).toBe('fail It is not ready: It waits')
  const troubled = { readiness: says({ reason: 'The ledger database has taken no write for 12 s' }) }
  expect(saidOfPlane('ready', troubled)).toContain('warn It is ready, but: The ledger database')
  const clock = (aheadMs: number | null) => saidOfPlane('clock', { health: says({ version: '0.2.0' }, 200, aheadMs) })
  expect(clock(600_000)).toBe("warn This host's clock is 600 s behind its")
  expect(clock(-600_000)).toBe("warn This host's clock is 600 s ahead of its")
  expect(clock(1000)).toContain('ok ')
  expect(clock(null)).toBe('')
})

test('reports a token that is missing, refused, bound to a gateway or sent in clear text', () => {
  expect(caller({ kind: 'none' })).toContain('warn There is no token')
  expect(caller({ kind: 'refused', status: 401, code: 'invalid_api_token' })).toContain('401 invalid_api_token')
  const silent = caller({ kind: 'refused', status: 503, code: 'dependency_unavailable' })
  expect(silent).toContain('could not be checked: the control plane answers 503 dependency_unavailable')
  expect(caller({ kind: 'known', tokenId: 'x', roles: ['runtime'], permissions: ['runtime:connect'] })).toContain(
    "fail The token is a gateway's own",
  )
  expect(caller(controlPlane.caller)).toContain('with the roles admin: catalog:read, tokens:read')
  expect(caller(controlPlane.caller, false)).toContain('warn The token crosses the network in clear text')
})

test('names the rate limits that an unreachable gateway still holds', () => {
  const absent = [{ account: 'token/t/requests', absent: 990, absent_until: at(-60) }]
  expect(said('rates', { absent })).toBe(
    `warn 990 a minute of token/t/requests are held until ${at(-60)} by a gateway that does not answer, and refused to others`,
  )
  expect([said('rates', { absent: [] }), said('rates', { absent: null })]).toEqual(['', ''])
})

test('warns of a sink that is minutes late, and fails for one that is hours late', () => {
  const sink = (name: string, state: string, lag_seconds: number, error: string | null = null) => ({
    ...{ name, state, lag_records: lag_seconds, lag_seconds, error },
  })
  const sinks = [
    sink('young', 'failing', 299, 'It answered 503'),
    sink('slow', 'delivering', 300),
    sink('off', 'disabled', 90_000),
    sink('splunk', 'failing', 7200, 'It answered 503'),
  ]
  expect(said('sinks', { sinks }).split('\n')).toEqual([
    'fail The sink splunk has not delivered 7200 records, the oldest for 120 minutes: It answered 503',
    'warn The sink slow has not delivered 300 records, the oldest for 5 minutes',
  ])
  expect([said('sinks', { sinks: [] }), said('sinks', { sinks: null })]).toEqual(['', ''])
})

test('reports workers that are unreachable, stale, behind, of another version or lost', () => {
  expect(saidOfWorker({ connected: false, last_heartbeat_at: at(20), serves_until: at(-280) })).toContain(
    `warn Worker gateway/instance/0 of shop is unreachable: it serves by what it knows until ${at(-280)}`,
  )
  expect(saidOfWorker({ connected: false, last_heartbeat_at: at(400), serves_until: at(100) })).toContain('fail Worker')
  expect(saidOfWorker({ acknowledged_version: 5 })).toContain('is behind: at version 5 of 7')
  expect(saidOfWorker({ version: '0.1.9' })).toContain('is of version 0.1.9, this is 0.2.0')
  expect(saidOfWorker({ connected: false, last_heartbeat_at: at(2 * day) })).toContain('Silent for more than a day')
  expect(saidOfWorker({ connected: false, left_at: at(5) })).toBe('ok Gateways are connected by 1 worker')
  expect(said('workers', { workers: [] })).toBe('warn No gateway is connected')
  expect(said('workers', { workers: null })).toContain('cannot be read')
})

test('reports after a restore which tokens came back, wait for revocation or are missing', () => {
  expect(said('restored', { restores: [now - 5000, now - 9000] })).toContain(
    `warn The state was restored from an older copy at ${at(5)}: 2 tokens that had ended came back`,
  )
  expect(said('restored', { takenOver: [now - 7000] })).toContain(`at ${at(7)} it took 1 token over from the state`)
  const holders = [
    holder('one', { pending_reconciliation: true }),
    holder('two', { pending_reconciliation: true, last_heartbeat_at: at(2 * day) }),
  ]
  const found = said('pending_reconciliation', { holders })
  expect(found).toContain('fail The ledger was restored, and nothing is granted of limits before')
  expect(found).toContain('of two, silent for more than a day')
  expect(found).not.toContain('goodbye')
  const workers = [{ ...worker, worker: 'one', left_at: at(50) }]
  expect(said('pending_reconciliation', { holders, workers })).toContain(
    '; one had deregistered when the copy was made',
  )
  expect(said('pending_reconciliation', { holders: [holder('one')] })).toBe('')
})

test('names each provider that charged more than its list price, and each worker that was lost with shares of limits', () => {
  const excesses = [{ provider_id: 'id of openai', model: 'gpt-x', excess: 0.5, at: at(9) }]
  expect(said('excesses', { excesses })).toContain('warn Provider openai charged $0.5 more for a request to gpt-x')
  const held = ['a', 'b', 'c', 'd'].map((account) => ({ account, amount: 1 }))
  const gone = holder('gone', { lost_at: at(5), held })
  expect(said('lost', { holders: [gone] })).toBe(
    `warn Worker gone is lost since ${at(5)} with shares of 4 accounts, which stay spent: a, b, c, …`,
  )
  expect(
    said('lost', {
      holders: [
        { ...gone, released_at: at(1) },
        { ...gone, held: [] },
        { ...gone, lost_at: null },
      ],
    }),
  ).toBe('')
})

test('names the provider keys of a revoked gateway that were not changed since', () => {
  const revoked = [{ id: 'id', name: 'edge', bindings: { gateway_id: 'gateway' }, revocation: { at: at(3 * day) } }]
  expect(said('keys', { revoked })).toContain('the keys of openai, spare')
  const keyChanges = new Map([
    ['id of openai', now - day * 1000],
    ['id of spare', now - 5 * day * 1000],
  ])
  expect(said('keys', { revoked, keyChanges })).toContain('had the keys of spare')
  const gateways = [{ id: 'gateway', name: 'shop', providers: null }]
  expect(said('keys', { revoked, gateways })).toContain('the keys of openai, spare, other')
  const deleted = said('keys', { revoked, gateways: [] })
  expect(deleted).toContain('its gateway, which is deleted, had the keys of openai, spare, other')
  const younger = [provider('openai', { created_at: at(day) }), provider('spare', { has_api_key: false })]
  expect(said('keys', { revoked, providers: younger })).toBe('')
})
