/**
 * Brings a database to the form this version knows. Migrations are the files of `migrations/`, embedded, in the order
 * of these lists and only forward: a file that has been released is never edited, a new one is added. Each runs in one
 * batch with its row in `schema_migrations`, so that it runs once, however many processes start at once, and not at all
 * where it fails half-way. The row holds the checksum of the file: data that another text of it made is refused. In a new database all of them are one batch: nothing there can make it long, and a first start
 * waits for the disk once.
 */
import { Failure } from '../../failure.ts'
import ledger0001 from '../migrations/ledger-0001.sql' with { type: 'text' }
import ledger0002 from '../migrations/ledger-0002.sql' with { type: 'text' }
import ledger0003 from '../migrations/ledger-0003.sql' with { type: 'text' }
import ledger0004 from '../migrations/ledger-0004.sql' with { type: 'text' }
import ledger0005 from '../migrations/ledger-0005.sql' with { type: 'text' }
import ledger0006 from '../migrations/ledger-0006.sql' with { type: 'text' }
import ledger0007 from '../migrations/ledger-0007.sql' with { type: 'text' }
import ledger0008 from '../migrations/ledger-0008.sql' with { type: 'text' }
import ledger0009 from '../migrations/ledger-0009.sql' with { type: 'text' }
import ledger0010 from '../migrations/ledger-0010.sql' with { type: 'text' }
import ledger0011 from '../migrations/ledger-0011.sql' with { type: 'text' }
import ledger0012 from '../migrations/ledger-0012.sql' with { type: 'text' }
import ledger0013 from '../migrations/ledger-0013.sql' with { type: 'text' }
import ledger0014 from '../migrations/ledger-0014.sql' with { type: 'text' }
import ledger0015 from '../migrations/ledger-0015.sql' with { type: 'text' }
import ledger0016 from '../migrations/ledger-0016.sql' with { type: 'text' }
import ledger0017 from '../migrations/ledger-0017.sql' with { type: 'text' }
import ledger0018 from '../migrations/ledger-0018.sql' with { type: 'text' }
import ledger0019 from '../migrations/ledger-0019.sql' with { type: 'text' }
import ledger0020 from '../migrations/ledger-0020.sql' with { type: 'text' }
import ledger0021 from '../migrations/ledger-0021.sql' with { type: 'text' }
import ledger0022 from '../migrations/ledger-0022.sql' with { type: 'text' }
import ledger0023 from '../migrations/ledger-0023.sql' with { type: 'text' }
import ledger0024 from '../migrations/ledger-0024.sql' with { type: 'text' }
import ledger0025 from '../migrations/ledger-0025.sql' with { type: 'text' }
import state0001 from '../migrations/state-0001.sql' with { type: 'text' }
import state0002 from '../migrations/state-0002.sql' with { type: 'text' }
import state0003 from '../migrations/state-0003.sql' with { type: 'text' }
import state0004 from '../migrations/state-0004.sql' with { type: 'text' }
import state0005 from '../migrations/state-0005.sql' with { type: 'text' }
import state0006 from '../migrations/state-0006.sql' with { type: 'text' }
import state0007 from '../migrations/state-0007.sql' with { type: 'text' }
import state0008 from '../migrations/state-0008.sql' with { type: 'text' }
import state0009 from '../migrations/state-0009.sql' with { type: 'text' }
import state0010 from '../migrations/state-0010.sql' with { type: 'text' }
import state0011 from '../migrations/state-0011.sql' with { type: 'text' }
import state0012 from '../migrations/state-0012.sql' with { type: 'text' }
import state0013 from '../migrations/state-0013.sql' with { type: 'text' }
import type { Database, Reader } from '../open.ts'
import { splitStatements } from '../statements.ts'

export interface Migration {
  name: string
  sql: string
}

export const stateMigrations: readonly Migration[] = [
  { name: 'state-0001', sql: state0001 },
  { name: 'state-0002', sql: state0002 },
  { name: 'state-0003', sql: state0003 },
  { name: 'state-0004', sql: state0004 },
  { name: 'state-0005', sql: state0005 },
  { name: 'state-0006', sql: state0006 },
  { name: 'state-0007', sql: state0007 },
  { name: 'state-0008', sql: state0008 },
  { name: 'state-0009', sql: state0009 },
  { name: 'state-0010', sql: state0010 },
  { name: 'state-0011', sql: state0011 },
  { name: 'state-0012', sql: state0012 },
  { name: 'state-0013', sql: state0013 },
]
export const ledgerMigrations: readonly Migration[] = [
  { name: 'ledger-0001', sql: ledger0001 },
  { name: 'ledger-0002', sql: ledger0002 },
  { name: 'ledger-0003', sql: ledger0003 },
  { name: 'ledger-0004', sql: ledger0004 },
  { name: 'ledger-0005', sql: ledger0005 },
  { name: 'ledger-0006', sql: ledger0006 },
  { name: 'ledger-0007', sql: ledger0007 },
  { name: 'ledger-0008', sql: ledger0008 },
  { name: 'ledger-0009', sql: ledger0009 },
  { name: 'ledger-0010', sql: ledger0010 },
  { name: 'ledger-0011', sql: ledger0011 },
  { name: 'ledger-0012', sql: ledger0012 },
  { name: 'ledger-0013', sql: ledger0013 },
  { name: 'ledger-0014', sql: ledger0014 },
  { name: 'ledger-0015', sql: ledger0015 },
  { name: 'ledger-0016', sql: ledger0016 },
  { name: 'ledger-0017', sql: ledger0017 },
  { name: 'ledger-0018', sql: ledger0018 },
  { name: 'ledger-0019', sql: ledger0019 },
  { name: 'ledger-0020', sql: ledger0020 },
  { name: 'ledger-0021', sql: ledger0021 },
  { name: 'ledger-0022', sql: ledger0022 },
  { name: 'ledger-0023', sql: ledger0023 },
  { name: 'ledger-0024', sql: ledger0024 },
  { name: 'ledger-0025', sql: ledger0025 },
]

/** Makes or updates the tables of the state database, and its `state_head`. */
export const migrateState = (database: Database): Promise<void> => migrate(database, stateMigrations)

/** Makes or updates the tables of the ledger. */
export const migrateLedger = (database: Database): Promise<void> => migrate(database, ledgerMigrations)

/**
 * Runs those of `migrations` that the database has not seen. Throws `data_incompatible` where it has seen one that is not
 * among them, for it was written by a newer version, or one of another text: this version must not write to either.
 */
export async function migrate(database: Database, migrations: readonly Migration[]): Promise<void> {
  await database.write([
    {
      sql: 'create table if not exists schema_migrations (name text primary key, applied_at integer not null, sha256 text)',
      args: [],
    },
  ])
  const seen = await appliedTo(database)
  requireKnown(seen, migrations)
  if (seen.size === 0 && migrations.length > 1) {
    await apply(database, migrations)
    return await migrate(database, migrations)
  }
  await addChecksums(database, seen, migrations)
  for (const migration of migrations) {
    if (!seen.has(migration.name)) await apply(database, [migration])
  }
}

/**
 * Whether this version may write to a database, by what it has seen, without doing anything to it; one that has no tables
 * yet may be. Throws `data_incompatible` as `migrate` does.
 */
export async function requireReadable(database: Reader, migrations: readonly Migration[]): Promise<void> {
  const table = await database.read("select 1 from sqlite_master where name = 'schema_migrations'")
  if (table.length > 0) requireKnown(await appliedTo(database), migrations)
}

/** Checksums of the migrations that a database has seen, by name; null where it was made before there were checksums. */
type Seen = ReadonlyMap<string, string | null>

function requireKnown(seen: Seen, migrations: readonly Migration[]): void {
  for (const [name, sha256] of seen) {
    const known = migrations.find((migration) => migration.name === name)
    if (known === undefined) {
      const message = `The database was made by a newer version (migration ${name}): start that version or a later one`
      throw new Failure('data_incompatible', { message })
    }
    if (sha256 !== null && sha256 !== checksum(known)) {
      const message = `The database was made by a version whose migration ${name} is another than this version's: start the version that made it, or put back a backup that this one made`
      throw new Failure('data_incompatible', { message })
    }
  }
}

const checksum = ({ sql }: Migration): string => new Bun.CryptoHasher('sha256').update(sql).digest('hex')

/** Of a database that has none: its migrations are taken to be those of this version. */
async function addChecksums(database: Database, seen: Seen, migrations: readonly Migration[]): Promise<void> {
  const without = migrations.filter(({ name }) => seen.get(name) === null)
  if (without.length === 0) return
  const columns = await database.read<{ name: string }>('pragma table_info (schema_migrations)')
  const hasColumn = columns.some(({ name }) => name === 'sha256')
  await database.write([
    ...(hasColumn ? [] : [{ sql: 'alter table schema_migrations add column sha256 text', args: [] }]),
    ...without.map((migration) => ({
      sql: 'update schema_migrations set sha256 = ? where name = ? and sha256 is null',
      args: [checksum(migration), migration.name],
    })),
  ])
}

async function apply(database: Database, migrations: readonly Migration[]): Promise<void> {
  const applied =
    "insert into schema_migrations (name, applied_at, sha256) values (?, cast(unixepoch('subsec') * 1000 as integer), ?)"
  try {
    await database.write(
      migrations.flatMap((migration) => [
        { sql: applied, args: [migration.name, checksum(migration)] },
        ...splitStatements(migration.sql).map((statement) => ({ sql: statement, args: [] })),
      ]),
    )
  } catch (error) {
    // Another process that started at the same time was first: its row broke our insert, and nothing of ours was run.
    const [first] = migrations
    if (first === undefined || !(await appliedTo(database)).has(first.name)) throw error
  }
}

async function appliedTo(database: Reader): Promise<Seen> {
  // Without naming the column: an older database lacks it.
  const rows = await database.read<{ name: string; sha256?: string | null }>('select * from schema_migrations')
  return new Map(rows.map(({ name, sha256 }) => [name, sha256 ?? null]))
}
