/** What the coordinator of the gateways needs of the control plane. */
import type { Settings } from '../../config.ts'
import type { Event } from '../../events/event.ts'
import type { Recorder } from '../../events/recorder.ts'
import type { Clock } from '../../lib/clock.ts'
import type { NewId } from '../../lib/ids.ts'
import type { Log } from '../../lib/log/log.ts'
import type { ReadCredential } from '../../store/keys/read-credential.ts'
import type { Database } from '../../store/open.ts'

export interface FleetOptions {
  state: Database
  ledger: Database
  clock: Clock
  newId: NewId
  /** Cryptographically strong. */
  randomBytes(size: number): Uint8Array
  log: Log
  settings: Pick<Settings, 'max_staleness_seconds'>
  /** Where gateways find the state: a file of this host, or a server with credentials that only read it. */
  source: { file: string } | { url: string; credential(): ReadCredential }
  /** 32 bytes; opens the ledger's secrets. */
  masterKey: Uint8Array
  /** Told of events that came in, and of how long each transaction of them took. */
  meter?: { ingested(events: readonly Event[]): void; sliced(seconds: number): void }
  /** Asked for when something is to be recorded; it is made after the fleet. */
  recorder(): Recorder
  /** Where other control planes reach this one. */
  peerUrl(): string
  /** The network address a request came from. */
  addressOf(request: Request): string
  /** Known when the listeners are: asked at each bootstrap. */
  baseUrl(): string
  gatewayUrl(): string
}
