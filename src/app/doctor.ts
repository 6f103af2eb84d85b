/**
 * Doctor's composition root: reads facts, then runs the tables of checks on them. It changes nothing and ends within a
 * few seconds, even if something hangs.
 */
import { resolve } from 'node:path'
import type { Settings } from '../config.ts'
import { controlPlaneChecks, versionOf } from '../doctor/control-plane-checks.ts'
import { examine, type NamedFinding } from '../doctor/finding.ts'
import { hostChecks } from '../doctor/host-checks.ts'
import { readHost } from '../doctor/host-facts.ts'
import { installationChecks } from '../doctor/installation-checks.ts'
import { readInstallation } from '../doctor/installation-facts.ts'
import { readOwnFindings } from '../doctor/own-findings.ts'
import { createProbe } from '../doctor/probe.ts'
import { upgradeChecks } from '../doctor/upgrade-checks.ts'
import { examineWorkers } from '../doctor/worker-checks.ts'
import type { Clock } from '../lib/clock.ts'
import { version } from '../version.ts'
import { findStartFaults } from './start-faults.ts'
import { readDataFacts } from './upgrade-facts.ts'

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
  const known = facts.controlPlane.caller.kind === 'known'
  return [
    ...examine(controlPlaneChecks, facts.controlPlane),
    ...examine(installationChecks, facts),
    ...(known ? await readOwnFindings(probe, facts.controlPlane.url, apiToken) : []),
  ]
}

/** What an upgrade to this executable would meet: what runs, as the operator sees it, and the databases here. */
export async function examineUpgrade(
  settings: Settings,
  { apiUrl, apiToken }: { apiUrl: string; apiToken: string | null },
  { fetch, clock }: DoctorOptions,
): Promise<NamedFinding[]> {
  const probe = createProbe({ fetch, clock, withinMs })
  const facts = await readInstallation(probe, { url: apiUrl, token: apiToken, now: clock.now() })
  const { controlPlane, workers, now } = facts
  const data = await readDataFacts(settings)
  return [
    // Another version is what an upgrade is about.
    ...examine(controlPlaneChecks, controlPlane).filter(({ check }) => check !== 'version'),
    ...examine(installationChecks, facts).filter(({ check }) => check === 'token'),
    ...examine(upgradeChecks, { now, version, workers, controlPlane: versionOf(controlPlane), data }),
  ]
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
