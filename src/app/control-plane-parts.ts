/** The parts of a control plane, connected with each other. */
import { randomBytes } from 'node:crypto'
import { join, resolve } from 'node:path'
import { alertStanding } from '../alerts/alert-standing.ts'
import type { Settings } from '../config.ts'
import { createRecorder } from '../events/change.ts'
import { archiveReport, unmovedRecords } from '../events/clickhouse/archive-state.ts'
import { movedLog } from '../events/clickhouse/moved-log.ts'
import { keepLogIn } from '../events/engine/log-of.ts'
import type { ExportRunner } from '../events/export/export-runner.ts'
import { createProof } from '../events/proof/proof.ts'
import { readVerifyReport } from '../events/verify/background.ts'
import { connectedWorkers } from '../fleet/coordinator/connected-workers.ts'
import { createFleet } from '../fleet/coordinator/coordinator.ts'
import type { Clock } from '../lib/clock.ts'
import { localUrl } from '../lib/http/listen.ts'
import type { NewId } from '../lib/ids.ts'
import type { Log } from '../lib/log/log.ts'
import { firstStart } from '../members/first-start.ts'
import { clientDocuments } from '../oauth/clients/client-document.ts'
import type { OAuthDependencies } from '../oauth/dependencies.ts'
import { readReport } from '../operation/doctor-report.ts'
import { resolveHost } from '../policies/resolve-host.ts'
import { heldFrom, sinkLags } from '../sinks/sink-lag.ts'
import { createSinks } from '../sinks/sinks.ts'
import { loadMasterKey } from '../store/keys/load-master-key.ts'
import { KeyRotation } from '../store/keys/rotate-master-key.ts'
import type { Fleet } from '../store/propagation.ts'
import { collected, withCollected } from '../store/transaction.ts'
import { type ControlPlaneMetrics, createControlPlaneMetrics } from '../telemetry/metrics.ts'
import { alertThresholds } from '../tokens/limits/alerts.ts'
import { createLastUse } from '../tokens/limits/last-use.ts'
import { depletionView } from '../usage/api/depletion.ts'
import type { Store } from './store.ts'

export interface ControlPlaneOptions {
  settings: Settings
  environment: Readonly<Record<string, string | undefined>>
  clock: Clock
  newId: NewId
  log: Log
  /** Called as soon as calls are accepted, with what a gateway on this host needs to start. */
  onListening(gateway: { api_token: string; state_file: string | null }): void
  /** Called with the new secret when the runtime token of the gateway on this host is rotated. */
  onRuntimeToken(secret: string): void
}

/** Longer than a request takes from sealing a value to writing it: each call of a database ends within 5 s. */
const settlingMs = 30_000

/** The parts behind the routes. The base address is set when the listener has its port. */
export async function connectParts({ settings, clock, newId, log }: ControlPlaneOptions, { source, ...store }: Store) {
  const [state, ledger] = [withCollected(store.state, 'state'), withCollected(store.ledger, 'ledger')]
  const archive = store.archive?.archive ?? null
  const keepMilliseconds = settings.events_move_after_seconds * 1000
  const movesBefore = () => clock.now() - keepMilliseconds
  if (archive !== null) keepLogIn(ledger, movedLog(ledger, archive))
  const masterKey = await loadMasterKey({
    settings,
    dataDirectory: resolve(settings.data),
    ledger,
    randomBytes,
  })
  const keyRotation = new KeyRotation({
    ...{ ledger, masterKey, randomBytes },
    isSetting: settings.master_key !== undefined,
    dataDirectory: resolve(settings.data),
    everyoneHasSettled: async (fingerprint) =>
      masterKey.hasSealedUnder(fingerprint, settlingMs) && (await workers.othersHoldNextKey(fingerprint, settlingMs)),
  })
  const addresses = {
    base: settings.base_url ?? '',
    gateway: settings.gateway_url ?? localUrl(settings.gateway_listen),
    console: settings.console_url ?? '',
  }
  const metrics = createControlPlaneMetrics({
    connectedWorkers: () => connectedWorkers(ledger),
    stateReads: () => workers.stateReads(),
    doctorReport: () => readReport(ledger),
    verifyReport: () => readVerifyReport(ledger),
    sinks: () => sinkLags(ledger, clock.now()),
    unmoved: async () => (archive === null ? nothingUnmoved : await unmovedRecords(ledger, movesBefore())),
    alerts: () => alertStanding(ledger),
  })
  const callers = new WeakMap<Request, string>()
  const lastUse = createLastUse(ledger)
  const workers = createFleet({
    meter: metrics,
    lastUse,
    state,
    ledger,
    source,
    masterKey,
    clock,
    newId,
    randomBytes,
    log,
    settings,
    peerUrl: () => settings.peer_url ?? addresses.base,
    addressOf: (request) => callers.get(request) ?? 'unknown',
    baseUrl: () => addresses.base,
    gatewayUrl: () => addresses.gateway,
    recorder: () => recorder,
  })
  workers.fleet = timed(workers.fleet, metrics, clock)
  const recorder = createRecorder({
    ...{ state, ledger, announce: workers.fleet.announce, clock, log },
    environment: settings.environment,
  })
  const shared = {
    ...{ state, ledger, recorder, masterKey, clock, newId, randomBytes, log },
    depletion: depletionView(ledger, (accounts) => workers.usage.allocator.recallAndWait(accounts)),
    alerts: alertThresholds(settings),
  }
  const oauth: OAuthDependencies = {
    ...{ state, ledger, recorder, clock, newId, randomBytes, log, settings },
    fleet: workers.fleet,
    documents: clientDocuments({ fetch, resolve: resolveHost, clock, hosts: settings.oauth_client_document_hosts }),
    baseUrl: () => addresses.base,
    gatewayUrl: () => addresses.gateway,
    consoleUrl: () => addresses.console,
    addressOf: (request) => callers.get(request) ?? 'unknown',
  }
  const installation = await firstStart(shared)
  const directory = resolve(settings.data)
  let runner: Promise<ExportRunner> | null = null
  const makeRunner = async () => {
    const { createExportRunner } = await import('../events/export/export-runner.ts')
    const address = () => addresses.base
    return createExportRunner({ ...shared, settings, directory: join(directory, 'exports'), address })
  }
  /** The exports of events; loaded when they are first looked at. */
  const exports = (): Promise<ExportRunner> => {
    runner ??= makeRunner()
    return runner
  }
  const proof = await createProof({
    ...{ state, ledger, clock, log, settings },
    dataDirectory: directory,
    announce: (head) => workers.fleet.announce(head, [], []),
    heldFrom: () => heldFrom(ledger),
  })
  return {
    shared,
    /** ClickHouse, and how it stands with what is moved there. */
    moving:
      archive === null
        ? null
        : { archive, keepMilliseconds, report: () => archiveReport(ledger, archive, movesBefore()) },
    workers,
    metrics,
    addresses,
    callers,
    oauth,
    installation,
    stateFile: 'file' in source ? source.file : null,
    exports,
    proof,
    sinks: createSinks({ ...shared, fetch, dataDirectory: directory, random: Math.random }),
    lastUse,
    settings,
    keyRotation,
  }
}

const nothingUnmoved = { records: 0, seconds: 0 }

export type Parts = Awaited<ReturnType<typeof connectParts>>

/** A fleet whose propagations are timed. */
const timed = (fleet: Fleet, metrics: Pick<ControlPlaneMetrics, 'propagated'>, clock: Clock): Fleet => ({
  ...fleet,
  async propagation(version) {
    const began = clock.monotonic()
    // No gateway has heard of a change that is only collected.
    const propagation = await fleet.propagation(collected() === null ? version : 0)
    metrics.propagated((clock.monotonic() - began) / 1000)
    return propagation
  },
})
