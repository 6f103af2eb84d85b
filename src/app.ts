/**
 * The composition roots: the only place that knows everyone. Each opens, wires and serves one process.
 */

import type { Settings } from './config.ts'
import { Failure } from './failure.ts'
import type { Clock } from './lib/clock.ts'
import type { NewId } from './lib/ids.ts'
import type { Log } from './lib/log.ts'

export interface ControlPlane {
  baseUrl: string
  stateFile: string
  runtimeToken: string
  adminToken: string | null
  setupUrl: string | null
  drain(): Promise<void>
}

export interface Gateway {
  url: string
  ready(): Promise<void>
  drain(): Promise<void>
}

export async function controlPlane(_parts: {
  settings: Settings
  environment: Readonly<Record<string, string | undefined>>
  clock: Clock
  newId: NewId
  log: Log
}): Promise<ControlPlane> {
  throw new Failure('dependency_unavailable')
}

export async function gateway(_parts: {
  settings: Settings
  stateFile: string
  clock: Clock
  newId: NewId
  log: Log
}): Promise<Gateway> {
  throw new Failure('dependency_unavailable')
}
