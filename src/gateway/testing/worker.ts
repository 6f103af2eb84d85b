/**
 * A worker in memory for the tests of this folder: a journal that remembers what was written and in which order, a
 * state of plain maps, and a status that is never stale unless set.
 */

import { type Settings, settingsSchema } from '../../config.ts'
import type { Event } from '../../events/event.ts'
import { eventsOf, expandRecord, type LogRecord } from '../../events/log/record.ts'
import { Failure, type FailureCode } from '../../failure.ts'
import type {
  CatalogModel,
  GatewayStatus,
  Grant,
  Journal,
  JsonOf,
  ManagedSettings,
  StateView,
} from '../../fleet/protocol/worker.ts'
import { hashSecret, makeSecret } from '../../identity/secret.ts'
import { systemClock } from '../../lib/clock.ts'
import { noPolicies, type PolicySet } from '../../policies/chain.ts'
import type { StoredPolicy } from '../../policies/stored-policy.ts'
import { PriceBook } from '../../providers/prices/price-book.ts'
import type { Provider } from '../../providers/provider.ts'
import type { GovernedToken } from '../../tokens/governed-token.ts'
import type {
  BatchesReply,
  BatchLedger,
  BatchUse,
  MadeObject,
  ObjectsQuery,
  ObjectsReply,
  OpenBatch,
} from '../../usage/batches/batch-protocol.ts'
import { noLimits } from '../../usage/limits.ts'
import { unlimited, unlimitedRates } from '../../usage/testing/unlimited.ts'
import type { WorkloadIdentity } from '../../workloads/workload-identity.ts'
import { MemoryBudget } from '../admission/memory-budget.ts'
import type { GatewayWorker } from '../server.ts'
import { Circuits } from '../upstream/circuit.ts'
import { Targets } from '../upstream/targets/targets.ts'

export const testGatewayId = '01990000-0000-7000-8000-000000000001'

export class TestJournal implements Journal {
  /** Exchange id → the outcome a restart would write. */
  readonly opened = new Map<string, Event>()
  /** Exchange id → the events of its record, as readers see them. */
  readonly closed = new Map<string, readonly Event[]>()
  /** Exchange id → the number of inner events it reserved space for; no exchange may need more. */
  readonly #room = new Map<string, number>()
  readonly refused: Event[] = []
  /** Milliseconds until a close is committed, so that a test can observe what waits for it. */
  closeDelay = 0
  /** Calls that fail, as a full disk makes them. */
  full: { open?: boolean; close?: boolean; refuse?: boolean } = {}
  closeCalls = 0

  async open(exchangeId: string, interrupted: JsonOf<Event>, innerEvents = 0): Promise<void> {
    if (this.full.open) throw new Failure('event_outbox_full')
    if (this.opened.has(exchangeId)) throw new Error('Opened twice')
    this.opened.set(exchangeId, JSON.parse(interrupted))
    this.#room.set(exchangeId, innerEvents)
  }

  async close(exchangeId: string, json: JsonOf<LogRecord>, innerEvents: number): Promise<void> {
    const record: LogRecord = JSON.parse(json)
    this.closeCalls += 1
    if (!this.opened.has(exchangeId)) throw new Error('Closed without having been opened')
    if (this.closed.has(exchangeId)) throw new Error('Closed twice')
    if (eventsOf(record) !== 1 + innerEvents) throw new Error('Closed with a wrong number of events')
    if (innerEvents > (this.#room.get(exchangeId) ?? 0)) throw new Error('More events than room was set aside for')
    if (this.full.close) throw new Error('write: no space left on device')
    if (this.closeDelay > 0) await Bun.sleep(this.closeDelay)
    this.closed.set(exchangeId, expandRecord(record))
  }

  async refuse(record: LogRecord): Promise<void> {
    if (this.full.refuse) throw new Failure('event_outbox_full')
    this.refused.push(...expandRecord(record))
  }

  /** Every outcome event so far, in no particular order. */
  outcomes(): Event[] {
    const all = [...this.refused, ...[...this.closed.values()].flat()]
    return all.filter(({ event_type }) => event_type === 'gateway.request.outcome')
  }

  attempts(): Event[] {
    return [...this.closed.values()].flat().filter(({ event_type }) => event_type === 'gateway.provider.attempt')
  }
}

/** A ledger that believes what it is told, and lists the batches that a test puts there. */
export class TestBatches implements BatchLedger {
  readonly open: OpenBatch[] = []
  readonly settled: BatchUse[] = []
  readonly made: MadeObject[] = []

  async sync(settled: readonly BatchUse[]): Promise<BatchesReply> {
    this.settled.push(...settled)
    const holds = new Set(this.settled.map(({ hold }) => hold))
    return { open: this.open.filter(({ hold }) => !holds.has(hold)), settled: [...holds] }
  }

  async list({ owner, kind, after, limit }: ObjectsQuery): Promise<ObjectsReply> {
    const places = this.made
      .filter((made) => made.owner === owner && made.kind === kind)
      .map(({ place }) => place)
      .reverse()
    const start = after === null ? 0 : places.findIndex((place) => Bun.deepEquals(place, after)) + 1
    return { places: places.slice(start, start + limit), has_more: places.length > start + limit }
  }
}

export interface TestWorker extends GatewayWorker {
  readonly batches: TestBatches
  readonly journal: TestJournal
  /** The gateway id may be emptied, as before a first bootstrap. */
  readonly status: GatewayStatus & { gatewayId: string }
  readonly tokens: Map<string, GovernedToken>
  readonly revocations: Set<string>
  readonly catalog: CatalogModel[]
  readonly upstreams: Provider[]
  readonly closedProviders: string[]
  policies: PolicySet
  workloadIdentities: ReadonlyMap<string, WorkloadIdentity>
  readonly grants: (Grant & { tokenId: string; digest: string })[]
  readonly managedSettings: ManagedSettings[]
  /** Set to make the state unusable. */
  stale: FailureCode | null
  /** Set to make reads of the state fail. */
  broken: boolean
  /** Adds a token and gives its secret. */
  addToken(members?: Partial<GovernedToken>): string
}

export function createTestWorker(): TestWorker {
  const tokens = new Map<string, GovernedToken>()
  const revocations = new Set<string>()
  const catalog: CatalogModel[] = []
  const upstreams: Provider[] = []
  const closedProviders: string[] = []
  const view: StateView = {
    version: 7,
    head: { version: 7, nonce: 'change-7', history: 'history' },
    token(hash) {
      if (worker.broken) throw new Error('disk I/O error')
      return tokens.get(hash) ?? null
    },
    isRevoked: (hash) => revocations.has(hash),
    model: (id) => catalog.find((model) => model.id === id) ?? null,
    models: () => catalog,
    provider: (id) =>
      closedProviders.includes(id) ? null : (upstreams.find((provider) => provider.id === id) ?? null),
    providers: () => upstreams,
    closedProviders,
    cacheClears: new Map(),
    get policies() {
      return worker.policies
    },
    grants: (tokenId, digest, now) =>
      worker.grants.filter((grant) => grant.tokenId === tokenId && grant.digest === digest && grant.expiresAt > now),
    managedSettings: () => worker.managedSettings,
    limits: noLimits,
    gateway: { spendOwner: null, promptCaching: false },
    get workloadIdentities() {
      return worker.workloadIdentities
    },
  }
  const worker: TestWorker = {
    journal: new TestJournal(),
    view,
    usageLimits: unlimited,
    rates: unlimitedRates,
    batches: new TestBatches(),
    tokens,
    revocations,
    catalog,
    upstreams,
    closedProviders,
    policies: noPolicies,
    workloadIdentities: new Map(),
    grants: [],
    managedSettings: [],
    stale: null,
    broken: false,
    counters: {
      stateVersion: 1,
      secondsSinceFresh: 0,
      connected: 1,
      outboxBytes: 0,
      outboxUnacknowledged: 0,
      openExchanges: 0,
      pendingRevocations: 0,
      tokensInMemory: 0,
      leaseMessages: 0,
      checkpointRegressions: 0,
      replicatorRestarts: 0,
      replicatedBytes: 0,
    },
    status: {
      gatewayId: testGatewayId,
      gatewayUrl: 'http://127.0.0.1:7080',
      baseUrl: 'http://127.0.0.1:7070',
      organizationId: '01990000-0000-7000-8000-0000000000ff',
      assertCurrent() {
        if (worker.stale !== null) throw new Failure(worker.stale)
      },
      storedIdKey: new Uint8Array(32).fill(7),
      promptHash: (body) => `key:${new Bun.CryptoHasher('sha256').update(body).digest('hex')}`,
    },
    ready: () => (worker.stale === null ? { ok: true } : { ok: false, reason: worker.stale }),
    addToken(members = {}) {
      const secret = makeSecret('token', (size) => crypto.getRandomValues(new Uint8Array(size)))
      const hash = hashSecret(secret)
      tokens.set(hash, testToken({ hash, ...members }))
      return secret
    },
  }
  return worker
}

const testToken = (members: Partial<GovernedToken>): GovernedToken => ({
  id: Bun.randomUUIDv7(),
  hash: '',
  purpose: 'general',
  principalType: 'api_token',
  keyClass: 'durable',
  gatewayId: null,
  teamId: null,
  userId: null,
  provider: null,
  modelFilter: null,
  roles: ['member'],
  ownerKind: 'team',
  ownerId: 'team-default',
  eventTeamId: 'team-default',
  policyIds: [],
  accessPolicyIds: [],
  budgetId: null,
  metadataTrust: 'none',
  metadata: {},
  mcpTools: 'listed',
  accounts: [],
  expiresAt: null,
  rotatedAt: null,
  revokedAt: null,
  version: 1,
  ...members,
})

export const testProvider = (members: Partial<Provider> = {}): Provider => ({
  id: 'provider-upstream',
  name: 'upstream',
  kind: 'openai',
  baseUrl: null,
  apiKey: 'sk-operator',
  headers: {},
  allowUnlistedModels: true,
  ...members,
})

export const testSettings = (members: Partial<Settings> = {}): Settings => ({ ...settingsSchema.parse({}), ...members })

/** Enough memory for whatever a test sends. */
export const testMemory = (): MemoryBudget => new MemoryBudget({ bytes: 2 ** 32, waitMilliseconds: 1000 })

export const testTargets = (): Targets =>
  new Targets({
    prices: new PriceBook(),
    circuits: new Circuits(testSettings()),
    clock: systemClock,
    random: Math.random,
  })

export const testModel = (members: Partial<CatalogModel> & Pick<CatalogModel, 'id'>): CatalogModel => ({
  providerId: 'provider-upstream',
  upstreamModel: members.id,
  families: null,
  price: null,
  maxOutputTokens: null,
  fallbacks: [],
  isTranslatedStrictly: false,
  shadow: null,
  createdAt: 0,
  strategy: 'priority',
  targets: null,
  tier: 1,
  weight: 1,
  ...members,
})

export const testPolicy = (
  change: Partial<StoredPolicy> & Pick<StoredPolicy, 'id' | 'kind' | 'config'>,
): StoredPolicy => ({
  stages: ['pre_request'],
  when: null,
  targets: {},
  position: 1,
  mode: 'enforce',
  whenBroken: 'deny',
  enabled: true,
  version: 1,
  ...change,
})
