/** What the routes and rules of tokens need from the rest of the control plane. */
import type { Recorder } from '../events/recorder.ts'
import type { Clock } from '../lib/clock.ts'
import type { NewId } from '../lib/ids.ts'
import type { MasterKey } from '../store/keys/master-key.ts'
import type { Database } from '../store/open.ts'
import type { Fleet } from '../store/propagation.ts'
import type { DepletionView } from './limits/depletion.ts'

export interface TokenDependencies {
  state: Database
  ledger: Database
  masterKey: MasterKey
  recorder: Recorder
  fleet: Fleet
  clock: Clock
  newId: NewId
  /** Cryptographically strong. */
  randomBytes(size: number): Uint8Array
  depletion: DepletionView
  alerts: AlertThresholds
  /** Called with the new secret when the runtime token of a start is rotated. */
  onRuntimeToken?(secret: string): void
}

export interface AlertThresholds {
  /** Milliseconds before expiry. */
  expiring: number
  /** Milliseconds since the token was made, by creation or rotation. */
  rotationDue: number
  /** The share, 0 … 1, of a limit from which on it is nearly used up. */
  nearExhaustion: number
}
