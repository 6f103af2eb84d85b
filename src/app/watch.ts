/**
 * Doctor by itself: every `doctor_interval_seconds` one of the control planes examines the installation, as
 * `gatehouse doctor` does, and keeps what it found in the ledger. It calls its own API within the process: no token, no
 * network. All checks are those of `gatehouse doctor`, which finds events by their index, so months of them cost little.
 */
import { resolve } from 'node:path'
import { lastBackup } from '../backup/last-backup.ts'
import { controlPlaneChecks } from '../doctor/control-plane-checks.ts'
import { type ControlPlaneHostFacts, controlPlaneHostChecks, freeBytes } from '../doctor/control-plane-host.ts'
import { examine, type NamedFinding } from '../doctor/finding.ts'
import { installationChecks } from '../doctor/installation-checks.ts'
import { readInstallation } from '../doctor/installation-facts.ts'
import { createProbe } from '../doctor/probe.ts'
import { readCheckpointLength } from '../events/proof/checkpoint.ts'
import { isPrivate } from '../fleet/agent/control-client.ts'
import { permissions } from '../identity/permissions.ts'
import { anonymous, type Principal } from '../identity/principal.ts'
import type { Log } from '../lib/log/log.ts'
import { Rounds } from '../lib/rounds.ts'
import { claimLook, writeReport } from '../operation/doctor-report.ts'
import type { Parts } from './control-plane-parts.ts'

/** In each interval a control plane asks so many times whether it is its turn. */
const turns = 6
const withinMs = 10_000

/** Reads everything of the organization, changes nothing. */
const watchman: Principal = {
  ...anonymous,
  kind: 'token',
  name: 'system:doctor',
  roles: ['auditor'],
  permissions: new Set(permissions.filter((permission) => permission.endsWith(':read'))),
}

export class Watch {
  readonly #own = new WeakSet<Request>()
  readonly #rounds: Rounds
  readonly #everyMs: number
  readonly #parts: Parts
  readonly #answer: (request: Request) => Promise<Response>

  /** `answer` is the whole API. */
  constructor(parts: Parts, answer: (request: Request) => Promise<Response>, log: Log) {
    this.#parts = parts
    this.#answer = answer
    this.#everyMs = parts.settings.doctor_interval_seconds * 1000
    this.#rounds = new Rounds(this.#everyMs / turns, async () => {
      try {
        await this.lookIfDue()
      } catch (error) {
        log.error({ work: 'doctor', error: String(error) }, 'Background work failed and will be tried again')
      }
    })
  }

  /** The caller of a request that this made itself; null for any other. */
  authenticate(request: Request): Principal | null {
    return this.#own.has(request) ? watchman : null
  }

  start(): void {
    this.#rounds.start()
  }

  stop(): Promise<void> {
    return this.#rounds.stop()
  }

  async lookIfDue(): Promise<void> {
    const { ledger, clock } = this.#parts.shared
    // A little less than the interval, so that the one that looked last does not miss a whole turn.
    if (!(await claimLook(ledger, this.#everyMs * (1 - 0.5 / turns)))) return
    const findings = (await this.#examine()).flatMap(({ check, level, what, todo = '' }) =>
      level === 'ok' ? [] : [{ check, level, what, todo }],
    )
    await writeReport(ledger, findings, clock.now())
  }

  async #examine(): Promise<NamedFinding[]> {
    const { settings, addresses, keyRotation, shared, stateFile } = this.#parts
    const { clock } = shared
    const call = async (url: string, init: RequestInit) => {
      const request = new Request(url, init)
      this.#own.add(request)
      return await this.#answer(request)
    }
    const probe = createProbe({ fetch: call, clock, withinMs })
    const facts = await readInstallation(probe, { url: addresses.base, token: 'own', now: clock.now() })
    const data = resolve(settings.data)
    const host = {
      now: clock.now(),
      free: stateFile === null ? null : freeBytes(data),
      lastBackupAt: stateFile === null ? null : (lastBackup(data)?.madeAt ?? null),
      checkpointLength: await readCheckpointLength(shared.state),
      rotation: keyRotation.state().state,
      archive: await this.#archive(),
    }
    return [
      ...examine(controlPlaneChecks, facts.controlPlane),
      // The token is no person's here.
      ...examine(installationChecks, facts).filter(({ check }) => check !== 'token'),
      ...examine(controlPlaneHostChecks, host),
    ]
  }

  async #archive(): Promise<ControlPlaneHostFacts['archive']> {
    const { settings, moving } = this.#parts
    if (moving === null) return null
    return { ...(await moving.report()), inTheClear: !isPrivate(settings.events_url ?? '') }
  }
}
