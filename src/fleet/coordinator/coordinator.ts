/**
 * The control plane's side of the fleet: the calls of gateways (fleet/protocol/wire.ts), the messages to their
 * workers, and the propagation report of a change that removes rights (fleet/README.md).
 */

import type { AnyElysia } from 'elysia'
import { announcedHead } from '../../events/ingest/ingest.ts'
import { putCheckpointBack } from '../../events/proof/restored-checkpoint.ts'
import { Failure } from '../../failure.ts'
import type { Principal } from '../../identity/principal.ts'
import type { MasterKey } from '../../store/keys/master-key.ts'
import { splitChanged } from '../../store/limit-rows.ts'
import type { Fleet, Head } from '../../store/propagation.ts'
import type { StateReads } from '../../telemetry/metrics.ts'
import { KnownLimitRows } from '../../usage/known-limit-rows.ts'
import { RestoreDetector } from '../agent/restore-detector.ts'
import { SessionCache } from '../agent/session-cache.ts'
import type { PeerSignal } from '../protocol/peer-signal.ts'
import { staleAfterMs } from '../protocol/wire.ts'
import { StateHead } from '../state/state-head.ts'
import { ChangeFeed } from './change-feed.ts'
import { recordEnrolment } from './enrolment.ts'
import type { FleetOptions } from './options.ts'
import { Peers } from './peers.ts'
import { propagate } from './propagation.ts'
import { readinessWarning } from './readiness-warning.ts'
import { batchesRoute } from './routes/batches.ts'
import { bootstrapRoute } from './routes/bootstrap.ts'
import { boundsRoutes } from './routes/bounds.ts'
import { credentialRoute } from './routes/credential.ts'
import { deregisterRoute } from './routes/deregister.ts'
import { eventsRoute } from './routes/events.ts'
import { heartbeatRoute } from './routes/heartbeat.ts'
import { leasesRoute } from './routes/leases.ts'
import { revocationsRoute } from './routes/revocations.ts'
import { slotsRoute } from './routes/slots.ts'
import { streamRoute } from './routes/stream.ts'
import { reportedHealth, targetsRoute } from './routes/target-health.ts'
import { workersRoute } from './routes/workers.ts'
import { RuntimeTokens } from './runtime-token.ts'
import { TokensMissingFromLedger } from './tokens-missing-from-ledger.ts'
import { revokeByLedger } from './tokens-to-revoke-again.ts'
import { createUsage, type UsageControl } from './usage.ts'
import { WorkerRegistry } from './worker-registry.ts'

/** How often each control plane reads the head, to find changes that no signal announced. */
const readHeadEveryMs = 1000

export interface FleetControl {
  fleet: Fleet
  routes: AnyElysia[]
  usage: UsageControl
  /** Whether every other control plane has the next master key of this fingerprint and has sealed under it so long. */
  othersHoldNextKey(fingerprint: string, sealedForMs: number): Promise<boolean>
  /** The calling gateway, if it can be known without the databases (fleet/agent/session-cache.ts). */
  authenticate(request: Request): Promise<Principal | null>
  /** The database that makes gateways go stale, in words; null if none does. */
  readinessWarning(): string | null
  /** How the state database has answered, for metrics. */
  stateReads(): StateReads
  /** How targets are, as the workers that this control plane knows said in the last seconds. */
  targets(): ReturnType<typeof reportedHealth>
  /** Detects and repairs a restored state. Call before serving. */
  prepare(): Promise<void>
  /** Takes over tokens that a restored ledger lacks. Call every few seconds. */
  takeOverTokens(): Promise<unknown>
  /** Connects to the other control planes, and from now on reads the state's head every second. */
  start(): Promise<void>
  close(): Promise<void>
}

export function createFleet(options: FleetOptions): FleetControl {
  const { clock, log } = options
  const shared = 'url' in options.source
  const watch = createWatch(options, shared)
  const { registry, stateHead, feed, limitRows } = watch
  const peers = new Peers({ ...options, id: options.newId(), fetch, address: options.peerUrl })
  const tokensMissingFromLedger = new TokensMissingFromLedger(options)
  const usage = createUsage(options, registry, {
    limitRows,
    peers,
    onRestored: () => tokensMissingFromLedger.suspect(),
  })
  const sessions = new SessionCache({ ...options, ...watch })
  registry.broadcastAcknowledgements = (workers) => peers.send({ kind: 'acknowledged', workers })
  const fleet: Fleet = {
    announce(head, revoked, endRequests, only_revocations = false, changed = null) {
      stateHead.announced(head)
      if (changed !== null) watch.changed(head.version, changed)
      // Sent first: workers of other control planes are one hop further away.
      void peers.send({ kind: 'state', head, revoked: [...revoked], end_requests: [...endRequests], only_revocations })
      feed.announce(head, revoked, endRequests, only_revocations)
      usage.announced(head.version)
      watch.checkLimits()
    },
    propagation: (version) =>
      propagate(registry, { version, staleAfterMs: staleAfterMs(options.settings.max_staleness_seconds), clock }),
  }
  let timer: Timer | null = null
  return {
    fleet,
    routes: [
      ...runtimeRoutes(options, { ...watch, usage, peers }),
      boundsRoutes(options),
      ...(shared ? [peers.route((signal) => receiveSignal(watch, usage, signal, options.masterKey))] : []),
    ],
    usage,
    othersHoldNextKey: (fingerprint, sealedForMs) =>
      peers.send({ kind: 'next_master_key', fingerprint, sealed_for_ms: sealedForMs }),
    authenticate: (request) => sessions.principal(request),
    readinessWarning: () =>
      readinessWarning({
        stateAgeMs: stateHead.ageMs,
        lastStall: stateHead.stalls.recent(clock.monotonic()),
        unwrittenMs: registry.unwrittenMs,
        unwrittenBecause: registry.writeError,
        remote: shared,
      }),
    stateReads: () => ({
      ageSeconds: stateHead.ageMs / 1000,
      stalls: stateHead.stalls.count,
      stallSeconds: stateHead.stalls.totalMs / 1000,
    }),
    targets: () => reportedHealth({ options, registry }),
    prepare: () => watch.readHead(),
    takeOverTokens: () => tokensMissingFromLedger.takeOverMissing(),
    async start() {
      if (shared) await peers.start()
      const passing = (error: unknown) => {
        // The next read tries again. Until then heartbeats report that nothing is fresh.
        log.debug(
          { error: String(error) },
          'The head of the state, or the transaction counts of the ledger, could not be read',
        )
      }
      watch.checkLimits()
      timer = setInterval(() => {
        void watch.readHead().then(watch.checkLimits, passing)
        void usage.reconcileIfRestored().catch(passing)
      }, readHeadEveryMs)
      timer.unref()
    },
    async close() {
      if (timer !== null) clearInterval(timer)
      await Promise.all([registry.close(), peers.close(), watch.idle()]).catch((error: unknown) => {
        // An unreachable ledger must not prevent the end: its rows expire by age.
        log.warn({ error: String(error) }, 'The last heartbeats of workers could not be written')
      })
    },
  }
}

type Watch = ReturnType<typeof createWatch>

/** What this control plane knows of the state and of workers, and its feed of changes to workers. */
function createWatch(options: FleetOptions, shared: boolean) {
  const { state, ledger, clock, log } = options
  const registry = new WorkerRegistry({ ledger, clock, log, shared })
  const tokens = new RuntimeTokens(state, clock)
  const endToken = async (tokenId: string): Promise<void> => {
    await ledger.write([{ sql: 'delete from runtime_sessions where token_id = ?', args: [tokenId] }])
    for (const worker of registry.all()) if (worker.tokenId === tokenId) worker.stream?.end()
  }
  const endInactive = async (version: number): Promise<void> => {
    for (const tokenId of new Set(registry.all().map((worker) => worker.tokenId))) {
      if (!(await tokens.active(tokenId, version))) await endToken(tokenId)
    }
  }
  const onBroadcast = (head: Head, revoked: readonly string[], only: boolean): void => {
    if (only) tokens.passed(head.version, revoked)
    if (revoked.length === 0) return
    endInactive(head.version).catch((error: unknown) => {
      // The next heartbeat of such a worker detects it again.
      log.warn({ error: String(error) }, 'Runtime tokens could not be looked up after a change')
    })
  }
  const changed = (version: number, rows: readonly string[]): void => {
    const { limits, tokens: changedTokens } = splitChanged(rows)
    limitRows.passed(version, limits)
    tokens.changed(version, changedTokens)
  }
  const feed = new ChangeFeed({ state, ledger, registry, log, onBroadcast })
  const onRestored = (head: Head): void => {
    log.error({ version: head.version }, 'The state was restored or replaced: every worker reconnects')
    feed.restart(head)
    seen.forget()
    tokens.forget()
    limitRows.forget()
    registry.restart().catch((error: unknown) => {
      // The workers' streams are closed. Each takes its row over again, with nothing acknowledged.
      log.warn({ error: String(error) }, 'Acknowledgements of a lost history could not be removed')
    })
  }
  const onForeignLog = (head: Head): void => {
    feed.restart(head)
    tokens.forget()
    limitRows.forget()
  }
  const stateHead = new StateHead({ state, clock }, { onRestored, onForeignLog })
  const limitRows = new KnownLimitRows({ state, log, newestVersion: () => stateHead.newestVersion })
  const checkLimits = (): void => {
    limitRows.check().catch((error: unknown) => {
      // Until the next check succeeds, no limit that was read before is used.
      log.debug({ error: String(error) }, 'The changed limits could not be read')
    })
  }
  const repair = async () => {
    const revoked = await revokeByLedger(options)
    await putCheckpointBack(options)
    log.warn({ revoked }, 'Tokens that a restored state had made active again are revoked')
  }
  const seen = new RestoreDetector({ ledger, stateHead, log, repair })
  let reading: Promise<void> | null = null
  const readHeadNow = async (): Promise<void> => {
    const head = await stateHead.read()
    await feed.catchUpTo(head)
    await seen.check(head)
  }
  const readHead = (): Promise<void> => {
    reading ??= readHeadNow().finally(() => {
      reading = null
    })
    return reading
  }
  const idle = async (): Promise<void> => {
    // The caller gets the error. This only waits for the end.
    await reading?.catch(() => undefined)
  }
  return { registry, tokens, endToken, feed, stateHead, limitRows, checkLimits, changed, readHead, idle }
}

/** The calls of gateways. */
function runtimeRoutes(
  options: FleetOptions,
  {
    registry,
    tokens,
    endToken,
    feed,
    stateHead,
    limitRows,
    usage,
    peers,
  }: Watch & { usage: UsageControl; peers: Peers },
): AnyElysia[] {
  return [
    bootstrapRoute({ options, stateHead }),
    streamRoute({
      options,
      registry,
      stateHead,
      chainHead: (chain) => announcedHead(options.ledger, chain),
      async onTaken({ worker, streamId }, known) {
        peers.send({ kind: 'taken', worker, stream_id: streamId })
        await usage.connected(worker, known)
      },
      async onHello(worker, head) {
        await feed.catchUpTo(head)
        await recordEnrolment(options, worker, head.version)
      },
    }),
    credentialRoute(options),
    heartbeatRoute({ options, registry, stateHead, tokens, usage, endToken }),
    revocationsRoute({ options, registry, stateHead }),
    deregisterRoute({ options, registry }),
    eventsRoute({ options, registry, usage }),
    workersRoute({ options, stateHead }),
    targetsRoute({ options, registry }),
    leasesRoute({ registry, usage }),
    batchesRoute({ registry, usage, ledger: options.ledger }),
    slotsRoute({ options, registry, limitRows, peers }),
  ]
}

/** Applies a signal of another control plane. */
function receiveSignal(
  { registry, stateHead, feed, checkLimits }: Watch,
  usage: UsageControl,
  signal: PeerSignal,
  masterKey: MasterKey,
): void {
  switch (signal.kind) {
    case 'acknowledged':
      registry.applyPeerAcknowledgements(signal.workers)
      break
    case 'next_master_key':
      if (!masterKey.hasSealedUnder(signal.fingerprint, signal.sealed_for_ms)) throw new Failure('conflict')
      break
    case 'taken':
      // If the ledger cannot be read, the next write of heartbeats finds the worker's owner.
      registry.takenElsewhere(signal.worker, signal.stream_id).catch(() => undefined)
      break
    case 'state':
      stateHead.heard(signal.head)
      feed.announce(signal.head, signal.revoked, signal.end_requests, signal.only_revocations)
      checkLimits()
      break
    default:
      usage.receiver.receiveSignal(signal)
  }
}
