/** What people's connections to MCP servers need from the rest of the control plane. */
import type { Recorder } from '../events/recorder.ts'
import type { Clock } from '../lib/clock.ts'
import type { NewId } from '../lib/ids.ts'
import type { Log } from '../lib/log/log.ts'
import type { Fetch } from '../members/identity-providers/bounded-fetch.ts'
import type { SessionSettings } from '../members/sessions/session.ts'
import type { Resolve } from '../policies/outside-target.ts'
import type { MasterKey } from '../store/keys/master-key.ts'
import type { Database } from '../store/open.ts'

export interface ConnectionDependencies {
  state: Database
  ledger: Database
  recorder: Recorder
  masterKey: MasterKey
  clock: Clock
  newId: NewId
  /** Cryptographically strong. */
  randomBytes(size: number): Uint8Array
  log: Log
  settings: SessionSettings
  fetch: Fetch
  resolve: Resolve
  baseUrl(): string
  consoleUrl(): string
}
