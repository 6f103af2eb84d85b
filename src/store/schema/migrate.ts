/**
 * Brings a database to the form this version knows. The migrations are the files that drizzle-kit generates from the
 * tables beside this module (`bun run migrations`), embedded in the executable, in the order of these lists and only
 * forward: a file that was released is never edited. Each runs in one batch with its row in `schema_migrations`, so
 * that it runs once, however many processes start at once, and not at all where it fails half-way. The row holds the
 * file's checksum: a database that another text of it made is refused. In a new database all of them are one batch,
 * so that a first start waits for the disk once.
 */
import { Failure } from '../../failure.ts'
import { version } from '../../version.ts'
import ledger0000 from '../migrations/ledger/0000_baseline.sql' with { type: 'text' }
import ledger0001 from '../migrations/ledger/0001_rows_and_triggers.sql' with { type: 'text' }
import ledger0002 from '../migrations/ledger/0002_features.sql' with { type: 'text' }
import ledger0003 from '../migrations/ledger/0003_governance.sql' with { type: 'text' }
import ledger0004 from '../migrations/ledger/0004_attribution.sql' with { type: 'text' }
import ledger0005 from '../migrations/ledger/0005_dismissed_offers.sql' with { type: 'text' }
import ledger0006 from '../migrations/ledger/0006_provider_tests.sql' with { type: 'text' }
import state0000 from '../migrations/state/0000_baseline.sql' with { type: 'text' }
import state0001 from '../migrations/state/0001_first_rows.sql' with { type: 'text' }
import state0002 from '../migrations/state/0002_features.sql' with { type: 'text' }
import state0003 from '../migrations/state/0003_governance.sql' with { type: 'text' }
import state0004 from '../migrations/state/0004_attribution.sql' with { type: 'text' }
import type { Database, Reader } from '../open.ts'

export interface Migration {
  name: string
  sql: string
}

export const stateMigrations: readonly Migration[] = [
  { name: '0000_baseline', sql: state0000 },
  { name: '0001_first_rows', sql: state0001 },
  { name: '0002_features', sql: state0002 },
  { name: '0003_governance', sql: state0003 },
  { name: '0004_attribution', sql: state0004 },
]
export const ledgerMigrations: readonly Migration[] = [
  { name: '0000_baseline', sql: ledger0000 },
  { name: '0001_rows_and_triggers', sql: ledger0001 },
  { name: '0002_features', sql: ledger0002 },
  { name: '0003_governance', sql: ledger0003 },
  { name: '0004_attribution', sql: ledger0004 },
  { name: '0005_dismissed_offers', sql: ledger0005 },
  { name: '0006_provider_tests', sql: ledger0006 },
]

/** Makes or updates the tables of the state database, and its `state_head`. */
export const migrateState = (database: Database): Promise<void> => migrate(database, stateMigrations)

/** Makes or updates the tables of the ledger. */
export const migrateLedger = (database: Database): Promise<void> => migrate(database, ledgerMigrations)

/**
 * Runs the `migrations` that the database has not seen. Throws `data_incompatible` if it has seen an unknown one,
 * written by a newer version, or one with another text: this version must not write to either.
 */
export async function migrate(database: Database, migrations: readonly Migration[]): Promise<void> {
  await database.write([
    {
      sql: 'create table if not exists schema_migrations (name text primary key, applied_at integer not null, sha256 text not null)',
      args: [],
    },
  ])
  const seen = await appliedTo(database)
  requireKnown(seen, migrations)
  if (seen.size === 0 && migrations.length > 1) {
    await apply(database, migrations)
    return await migrate(database, migrations)
  }
  for (const migration of migrations) {
    if (!seen.has(migration.name)) await apply(database, [migration])
  }
}

/**
 * Whether this version may write to a database, judged by its migrations, without changing it; a database without
 * tables is accepted. Throws `data_incompatible` as `migrate` does.
 */
export async function requireReadable(database: Reader, migrations: readonly Migration[]): Promise<void> {
  await pendingMigrations(database, migrations)
}

/**
 * The migrations that a start would run. Throws `data_incompatible` as `migrate` does.
 */
export async function pendingMigrations(database: Reader, migrations: readonly Migration[]): Promise<Migration[]> {
  const table = await database.read("select 1 from sqlite_master where name = 'schema_migrations'")
  const seen: Seen = table.length === 0 ? new Map() : await appliedTo(database)
  requireKnown(seen, migrations)
  return migrations.filter(({ name }) => !seen.has(name))
}

/** Checksums of the migrations that a database has seen, by name. */
type Seen = ReadonlyMap<string, string>

function requireKnown(seen: Seen, migrations: readonly Migration[]): void {
  for (const [name, sha256] of seen) {
    const known = migrations.find((migration) => migration.name === name)
    if (known === undefined) {
      const message = `The database was upgraded by a later version: this one, ${version}, has no migration ${name}, and a downgrade is refused. Start the version that upgraded it or a later one, or restore a backup that an older one made`
      throw new Failure('data_incompatible', { message })
    }
    if (sha256 !== checksum(known)) {
      const message = `The database was made by a version whose migration ${name} differs from this version's: start the version that made it, or restore a backup that this version made`
      throw new Failure('data_incompatible', { message })
    }
  }
}

const checksum = ({ sql }: Migration): string => new Bun.CryptoHasher('sha256').update(sql).digest('hex')

/** The statements of a migration: over HTTP, a text of several would be no transaction. */
const statementsOf = ({ sql }: Migration): string[] =>
  sql.split('--> statement-breakpoint').map((statement) => statement.trim())

async function apply(database: Database, migrations: readonly Migration[]): Promise<void> {
  const applied =
    "insert into schema_migrations (name, applied_at, sha256) values (?, cast(unixepoch('subsec') * 1000 as integer), ?)"
  try {
    await database.write(
      migrations.flatMap((migration) => [
        { sql: applied, args: [migration.name, checksum(migration)] },
        ...statementsOf(migration).map((sql) => ({ sql, args: [] })),
      ]),
    )
  } catch (error) {
    // Another process that started at the same time was first: its row broke our insert, and nothing of ours was run.
    const [first] = migrations
    if (first === undefined || !(await appliedTo(database)).has(first.name)) throw error
  }
}

async function appliedTo(database: Reader): Promise<Seen> {
  const rows = await database.read<{ name: string; sha256: string }>('select name, sha256 from schema_migrations')
  return new Map(rows.map(({ name, sha256 }) => [name, sha256]))
}
