/** What the coordinator of gateways needs from the control plane. */
import type { Settings } from '../../config.ts'
import type { LogRecord } from '../../events/log/record.ts'
import type { Recorder } from '../../events/recorder.ts'
import type { Clock } from '../../lib/clock.ts'
import type { NewId } from '../../lib/ids.ts'
import type { Log } from '../../lib/log/log.ts'
import type { MasterKey } from '../../store/keys/master-key.ts'
import type { ReadCredential } from '../../store/keys/read-credential.ts'
import type { Database } from '../../store/open.ts'
import type { LastUse } from '../../tokens/limits/last-use.ts'

export interface FleetOptions {
  state: Database
  ledger: Database
  clock: Clock
  newId: NewId
  /** Cryptographically strong. */
  randomBytes(size: number): Uint8Array
  log: Log
  settings: Pick<Settings, 'max_staleness_seconds'>
  /** Where gateways read the state: a file on this host, or a server with credentials that only read it. */
  source: { file: string } | { url: string; credential(): ReadCredential }
  /** 32 bytes; opens the ledger's secrets. */
  masterKey: MasterKey
  /** Called with ingested records, and with how many seconds each of their transactions held the ledger. */
  meter?: { ingested(records: readonly LogRecord[]): void; held(seconds: number): void }
  /** Called with ingested records, which use tokens, and when they were received. */
  lastUse?: Pick<LastUse, 'ingested'>
  /** Called when something is recorded, since the recorder is made after the fleet. */
  recorder(): Recorder
  /** The address where other control planes reach this one. */
  peerUrl(): string
  /** The network address a request came from. */
  addressOf(request: Request): string
  /** Called at each bootstrap, since it is known only when the listeners are. */
  baseUrl(): string
  gatewayUrl(): string
}
