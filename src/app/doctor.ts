/**
 * Doctor's composition root: reads facts, then runs the tables of checks on them. It changes nothing and ends within a
 * few seconds, even if something hangs.
 */
import { resolve } from 'node:path'
import type { Settings } from '../config.ts'
import { controlPlaneChecks } from '../doctor/control-plane-checks.ts'
import { examine, type NamedFinding } from '../doctor/finding.ts'
import { hostChecks } from '../doctor/host-checks.ts'
import { readHost } from '../doctor/host-facts.ts'
import { installationChecks } from '../doctor/installation-checks.ts'
import { readInstallation } from '../doctor/installation-facts.ts'
import { createProbe } from '../doctor/probe.ts'
import { examineWorkers } from '../doctor/worker-checks.ts'
import type { Clock } from '../lib/clock.ts'
import { findStartFaults } from './start-faults.ts'

const withinMs = 3000

export interface DoctorOptions {
  fetch: typeof globalThis.fetch
  clock: Clock
}

/** An installation, as seen by the operator with this token. */
export async function examineInstallation(
  { apiUrl, apiToken }: { apiUrl: string; apiToken: string | null },
  { fetch, clock }: DoctorOptions,
): Promise<NamedFinding[]> {
  const probe = createProbe({ fetch, clock, withinMs })
  const facts = await readInstallation(probe, { url: apiUrl, token: apiToken, now: clock.now() })
  return [...examine(controlPlaneChecks, facts.controlPlane), ...examine(installationChecks, facts)]
}

/** The host of a gateway, by its data directory and the gateway's settings. */
export async function examineHost(settings: Settings, { fetch, clock }: DoctorOptions): Promise<NamedFinding[]> {
  const probe = createProbe({ fetch, clock, withinMs })
  const facts = await readHost(
    { probe, findFaults: findStartFaults },
    { ...settings, data: resolve(settings.data) },
    clock.now(),
  )
  return [
    ...examine(hostChecks, facts),
    ...examineWorkers(facts),
    ...(facts.controlPlane === null ? [] : examine(controlPlaneChecks, facts.controlPlane)),
  ]
}
