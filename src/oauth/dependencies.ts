/** What the OAuth server needs from the rest of the control plane. */
import type { Settings } from '../config.ts'
import type { Recorder } from '../events/recorder.ts'
import type { Clock } from '../lib/clock.ts'
import type { NewId } from '../lib/ids.ts'
import type { Log } from '../lib/log/log.ts'
import type { SessionSettings } from '../members/sessions/session.ts'
import type { Database } from '../store/open.ts'
import type { Fleet } from '../store/propagation.ts'
import type { ClientDocuments } from './clients/client-document.ts'

export type OAuthSettings = Pick<
  Settings,
  | 'oauth_scopes'
  | 'oauth_dynamic_registration'
  | 'oauth_code_seconds'
  | 'oauth_device_seconds'
  | 'oauth_access_seconds'
  | 'oauth_refresh_idle_seconds'
  | 'oauth_refresh_lifetime_seconds'
>

export interface OAuthDependencies {
  state: Database
  ledger: Database
  recorder: Recorder
  fleet: Fleet
  clock: Clock
  newId: NewId
  /** Cryptographically strong. */
  randomBytes(size: number): Uint8Array
  log: Log
  settings: OAuthSettings & SessionSettings
  documents: ClientDocuments
  /** Addresses as people see them; functions, for a port may be chosen when the server listens. */
  baseUrl(): string
  gatewayUrl(): string
  consoleUrl(): string
  /** The network address of the caller, as the server saw it. Headers are not believed. */
  addressOf(request: Request): string
}
