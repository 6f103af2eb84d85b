/**
 * The control plane's side of the fleet: the four calls of gateways (wire.ts), what is pushed to their lanes, and what
 * a change that takes rights away answers with (protocols sections 1, 4, 5).
 */
import type { AnyRoute } from '../api/route.ts'
import type { Settings } from '../config.ts'
import { chainHead } from '../events/ingest.ts'
import type { Recorder } from '../events/recorder.ts'
import type { Clock } from '../lib/clock.ts'
import type { NewId } from '../lib/ids.ts'
import type { Log } from '../lib/log.ts'
import type { Database } from '../store/open.ts'
import { beatRoute } from './beat-route.ts'
import { bootstrapRoute } from './bootstrap-route.ts'
import { eventsRoute } from './events-route.ts'
import type { Fleet } from './fleet.ts'
import { LaneRegistry } from './lane-registry.ts'
import { lanesRoute } from './lanes-route.ts'
import { leasesRoute } from './leases-route.ts'
import { propagate } from './propagation.ts'
import { RuntimeTokens } from './runtime-token.ts'
import { slotsRoute } from './slots-route.ts'
import { StateHead } from './state-head.ts'
import { streamRoute } from './stream-route.ts'
import { createUsage, type UsageControl } from './usage.ts'
import { type StreamMessage, staleAfterMs } from './wire.ts'

export interface FleetOptions {
  state: Database
  ledger: Database
  clock: Clock
  newId: NewId
  /** Cryptographically strong. */
  randomBytes(size: number): Uint8Array
  log: Log
  settings: Pick<Settings, 'max_staleness_seconds'>
  /** 32 bytes; opens the ledger's secrets. */
  masterKey: Uint8Array
  /** Asked for when something is to be recorded; it is made after the fleet. */
  recorder(): Recorder
  /** Known when the listeners are: asked at each bootstrap. */
  baseUrl(): string
  gatewayUrl(): string
}

export function createFleet(options: FleetOptions): {
  fleet: Fleet
  routes: AnyRoute[]
  usage: UsageControl
  close(): Promise<void>
} {
  const { state, ledger, clock, log } = options
  const registry = new LaneRegistry(ledger, clock, log)
  const stateHead = new StateHead(state, clock)
  const tokens = new RuntimeTokens(state, clock)
  const versions = new Map<string, string>()
  const usage = createUsage(options, registry)

  const endToken = async (tokenId: string): Promise<void> => {
    await ledger.write([{ sql: 'delete from runtime_sessions where token_id = ?', args: [tokenId] }])
    for (const lane of registry.all()) if (lane.tokenId === tokenId) lane.stream?.end()
  }
  const endInactive = async (version: number): Promise<void> => {
    for (const tokenId of new Set(registry.all().map((lane) => lane.tokenId))) {
      if (!(await tokens.active(tokenId, version))) await endToken(tokenId)
    }
  }

  const fleet: Fleet = {
    announce(head, deny, cut) {
      stateHead.announced(head)
      const change: StreamMessage = { kind: 'change', head, since: head.version - 1, deny: [...deny], cut: [...cut] }
      for (const { stream } of registry.all()) stream?.send(change)
      usage.announced(head.version)
      if (deny.length === 0) return
      endInactive(head.version).catch((error: unknown) => {
        // The next beat of such a lane finds it out again.
        log.warn({ error: String(error) }, 'Runtime tokens could not be looked up after a change')
      })
    },
    propagation: (version) =>
      propagate(registry, { version, staleAfterMs: staleAfterMs(options.settings.max_staleness_seconds), clock }),
  }
  const routes = [
    bootstrapRoute({
      options,
      stateHead,
      onVersion: (instanceId, version) => versions.set(instanceId, version),
    }),
    streamRoute({
      options,
      registry,
      stateHead,
      chainHead: (chain) => chainHead(ledger, chain),
      versionOf: (instanceId) => versions.get(instanceId) ?? null,
    }),
    beatRoute({ options, registry, stateHead, tokens, endToken }),
    eventsRoute({ options, registry, usage }),
    lanesRoute({ options, stateHead }),
    leasesRoute({ registry, usage }),
    slotsRoute({ options, registry }),
  ]
  return { fleet, routes, usage, close: () => registry.close() }
}
