/** What the routes of people need of the rest of the control plane. */
import type { Recorder } from '../events/recorder.ts'
import type { Database } from '../store/open.ts'
import type { EventMaker } from './member-event.ts'
import type { SessionSettings } from './session.ts'

export interface MemberDependencies extends EventMaker {
  ledger: Database
  recorder: Recorder
  settings: SessionSettings
  randomBytes(size: number): Uint8Array
  /** Addresses as people see them; functions, for a port may be chosen when the server listens. */
  baseUrl(): string
  consoleUrl(): string
  /** The network address a request came from, as the server saw it: no header is believed here. */
  addressOf(request: Request): string
}
