/** Checks before an upgrade: what runs, what the start of this executable would change, and what it would refuse. */
import { type Checks, fail, ok, warn } from './finding.ts'
import type { DirectoryFault } from './host-facts.ts'
import type { WorkerFacts } from './installation-facts.ts'

const dayMs = 86_400_000

export interface UpgradeFacts {
  now: number
  /** Of this executable, to which the installation is to be upgraded. */
  version: string
  /** Of the control plane that answered; null where none did. */
  controlPlane: string | null
  /** Null where they could not be read. */
  workers: readonly WorkerFacts[] | null
  /** Null where there is no database here, nor a setting for one. */
  data: DataFacts | null
}

export interface DataFacts {
  /** Migrations that a start of this executable runs, as `state 0003_name`; null where a start would be refused. */
  pending: readonly string[] | null
  /** The oldest gateway that reads the state after these migrations; null where they do not raise it. */
  readsFrom: string | null
  /** What a start of this executable would refuse. */
  faults: readonly DirectoryFault[]
  /** When a backup was last made of this directory. `elsewhere`: databases on servers have their own. */
  lastBackup: { madeAt: number; file: string } | 'none' | 'elsewhere'
}

const before = (one: string, other: string): boolean => Bun.semver.order(one, other) < 0

export const upgradeChecks: Checks<UpgradeFacts> = {
  control_planes({ controlPlane, version }) {
    if (controlPlane === null) return null
    if (controlPlane === version) return ok(`The control plane is of version ${version} already`)
    if (before(version, controlPlane)) {
      return fail(
        `The control plane is of version ${controlPlane}, and this executable is the older ${version}: a downgrade is refused`,
        `Use version ${controlPlane} or a later one; to go back, restore a backup that the older version made`,
      )
    }
    return ok(`The control plane is upgraded from ${controlPlane} to ${version}`)
  },

  gateways({ workers, controlPlane, version, data }) {
    if (workers === null) return null
    const present = workers.filter(({ left_at, version }) => left_at === null && version !== '')
    const newer = present.filter((worker) => before(controlPlane ?? version, worker.version))
    const tooOld = present.filter((worker) => data?.readsFrom != null && before(worker.version, data.readsFrom))
    const older = present.filter((worker) => before(worker.version, version) && !tooOld.includes(worker))
    return [
      ...newer.map((worker) =>
        fail(
          `Worker ${named(worker)} is newer than its control plane`,
          'Upgrade control planes first: what a newer gateway asks for, an older control plane may refuse',
        ),
      ),
      ...tooOld.map((worker) =>
        fail(
          `Worker ${named(worker)} cannot read the state after the upgrade: that needs ${data?.readsFrom} or later`,
          'Upgrade that gateway to the last version before this one, and this executable afterwards',
        ),
      ),
      older.length === 0
        ? ok('No gateway is older than this executable')
        : ok(`After the control planes, upgrade the gateways of these workers: ${older.map(named).join(', ')}`),
    ]
  },

  migrations({ data }) {
    if (data?.pending == null) return null
    if (data.pending.length === 0) return ok('A start runs no migration')
    return ok(`A start runs the migrations ${data.pending.join(', ')}: after it, only a backup leads back`)
  },

  refusals({ data }) {
    return (data?.faults ?? []).map(({ level, what, todo }) => ({ level, what, todo }))
  },

  backup({ data, now }) {
    if (data === null) return null
    if (data.lastBackup === 'elsewhere') {
      return warn(
        'The databases are on servers, whose backups are not known here',
        'Have a copy of state and ledger of one moment before you go on',
      )
    }
    const make = 'Make one: gatehouse backup FILE --passphrase-env NAME'
    if (data.lastBackup === 'none') return fail('No backup was made of this data directory', make)
    const { madeAt, file } = data.lastBackup
    const hours = Math.floor((now - madeAt) / 3_600_000)
    if (now - madeAt > dayMs) return fail(`The last backup is ${hours} hours old: ${file}`, make)
    return ok(`The last backup is ${hours} hours old: ${file}`)
  },
}

const named = ({ worker, gateway_name, version }: WorkerFacts): string =>
  `${worker} of ${gateway_name} (version ${version})`
