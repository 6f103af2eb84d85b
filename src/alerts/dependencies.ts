/** What alerts need of the rest of the control plane, and what other rooms find for them. */
import type { Settings } from '../config.ts'
import type { Recorder } from '../events/recorder.ts'
import type { Clock } from '../lib/clock.ts'
import type { NewId } from '../lib/ids.ts'
import type { Log } from '../lib/log/log.ts'
import type { MasterKey } from '../store/keys/master-key.ts'
import type { Database } from '../store/open.ts'

export interface AlertDependencies {
  state: Database
  ledger: Database
  recorder: Recorder
  masterKey: MasterKey
  clock: Clock
  newId: NewId
  log: Log
  settings: Pick<Settings, 'webhook_addresses' | 'event_retention_days'>
  /** Where people see what a notice is about. */
  consoleUrl(): string
  sources: AlertSources
}

/**
 * What cannot be read from the databases. A source that is absent, or answers null, is not known now: what it found
 * before stays open.
 */
export interface AlertSources {
  /** Targets as the gateways that this control plane knows measured them in the last seconds. */
  targets?(): readonly Target[] | null
  sinkLag?(): Promise<readonly Measured[] | null>
  /** Values: 1 for a warning, 2 for a failure. */
  doctor?(): Promise<readonly Measured[] | null>
  /** Each finding has the value 1. */
  verify?(): Promise<readonly Measured[] | null>
}

export interface Target {
  provider: string
  model: string
  worker: string
  circuit_open: boolean
}

/** One thing that a condition has measured. */
export interface Measured {
  /** What it is about, the same as long as it is the same thing: an id or a name. */
  subject: string
  /** In the unit of the condition. */
  value: number
  /** One or two sentences for a person. Asked for only when it is announced. */
  about(): string | Promise<string>
  /** It fires once for this subject, whatever happens later: the subject names a window. */
  once?: true
  /** The group that it belongs to, where there can be very many: announced and counted apart from the rest of the alert. */
  group?: Group
}

/** Of an alert, or of a group, so many subjects have firings of their own; one firing more counts the others. */
export const subjectsAtMost = 20

export interface Group {
  subject: string
  /** How many of it have reached a threshold, those that were not measured one by one too. */
  count: number
  /** The text of the firing that counts those without a firing of their own, by their number. */
  more(count: number): string
}
