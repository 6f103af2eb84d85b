import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import type { Clock } from '../lib/clock.ts'
import { silentLog } from '../lib/log/log.ts'
import type { Database } from '../store/open.ts'
import type { Statement } from '../store/statement.ts'
import { withCollected } from '../store/transaction.ts'
import { createRecorder } from './change.ts'
import type { Change } from './recorder.ts'
import { emptyTestDatabases, openTestDatabases, type TestDatabases, testEvent } from './testing/ledger.ts'
import { recordedChains } from './testing/recorded.ts'

let databases: TestDatabases
const now = Date.parse('2026-01-01T00:00:00Z')
const clock: Clock = { now: () => now, monotonic: () => now }

beforeAll(async () => {
  databases = await openTestDatabases()
})
afterAll(() => databases.remove())
beforeEach(async () => {
  await emptyTestDatabases(databases)
})

interface Both {
  state: Database
  ledger: Database
}

/** A recorder, and the databases as the code sees them that makes the changes. */
function partsOn({ state, ledger }: Both) {
  const seen = { state: withCollected(state, 'state'), ledger: withCollected(ledger, 'ledger') }
  const recorder = createRecorder({ ...seen, announce: () => undefined, clock, environment: 'test', log: silentLog })
  return { ...seen, recorder }
}

const secret = (name: string): Statement => ({
  sql: 'insert into secrets (name, sealed, created_at) values (?, ?, 0)',
  args: [name, 'x'],
})

const gateway = (name: string, more: Partial<Change> = {}): Change => ({
  event: testEvent({ event_type: 'catalog.created', details: { name } }),
  state: [
    {
      sql: 'insert into gateways (id, name, version) values (?, ?, (select version from state_head))',
      args: [name, name],
    },
  ],
  ledger: [secret(name)],
  ...more,
})
const ofLedger = (name: string): Change => gateway(name, { state: [] })

const names = async () => ({
  gateways: (await databases.state.read<{ id: string }>('select id from gateways order by id')).map(({ id }) => id),
  secrets: (await databases.ledger.read<{ name: string }>('select name from secrets order by name')).map(
    ({ name }) => name,
  ),
  events: (await recordedChains(databases.ledger)).map(({ text }) => JSON.parse(text).details.name),
  pending: (await databases.ledger.read('select 1 from pending_changes')).length,
})
const nothing = { gateways: [], secrets: [], events: [], pending: 0 }

test('makes all changes, each with its event and its version', async () => {
  const { recorder } = partsOn(databases)
  await recorder.together(
    async () => {
      await recorder.change(gateway('a'))
      await recorder.change(ofLedger('b'))
      await recorder.change(gateway('c'))
    },
    { dryRun: false },
  )
  expect(await names()).toEqual({ gateways: ['a', 'c'], secrets: ['a', 'b', 'c'], events: ['a', 'b', 'c'], pending: 0 })
  const versions = (await recordedChains(databases.ledger)).map(({ text }) => JSON.parse(text).config_version)
  expect(versions).toEqual([versions[0], versions[0] + 1, versions[0] + 2])
  const [{ version } = { version: 0 }] = await databases.state.read<{ version: number }>(
    "select version from gateways where id = 'c'",
  )
  expect(versions[2]).toBe(version)
})

test('lets the work read what it has changed, and nobody else', async () => {
  const { recorder, state } = partsOn(databases)
  const seen = await recorder.together(
    async () => {
      await recorder.change(gateway('a'))
      return [await state.read('select id from gateways'), await databases.state.read('select id from gateways')]
    },
    { dryRun: false },
  )
  expect(seen).toEqual([[{ id: 'a' }], []])
})

test('changes nothing where one is refused, where the work fails, and in a dry run', async () => {
  const { recorder } = partsOn(databases)
  const guard = { sql: 'select not exists (select 1 from gateways where id = ?)', args: ['a'] }
  const refused = recorder.together(
    async () => {
      await recorder.change(ofLedger('b'))
      await recorder.change(gateway('a'))
      await recorder.change(gateway('c', { guard }))
    },
    { dryRun: false },
  )
  await expect(refused).rejects.toMatchObject({ code: 'conflict' })
  const failed = recorder.together(
    async () => {
      await recorder.change(gateway('a'))
      throw new RangeError('The work failed')
    },
    { dryRun: false },
  )
  await expect(failed).rejects.toThrow('The work failed')
  await recorder.together(() => recorder.change(gateway('a')), { dryRun: true })
  expect(await names()).toEqual(nothing)
})

test('tries again where another change came between, and refuses what that one took', async () => {
  const { recorder } = partsOn(databases)
  const other = partsOn(databases).recorder
  let rounds = 0
  const asRead = (version: number) => ({ sql: 'select (select version from state_head) = ?', args: [version] })
  await recorder.together(
    async () => {
      rounds += 1
      const { head } = await recorder.change(gateway('a'))
      await recorder.change(gateway('b', { guard: asRead(head.version + 1) }))
      if (rounds === 1) await databases.state.write([{ sql: 'update state_head set version = version + 1', args: [] }])
    },
    { dryRun: false },
  )
  expect(rounds).toBe(2)
  await other.change(gateway('taken'))
  await expect(recorder.together(() => recorder.change(gateway('taken')), { dryRun: false })).rejects.toThrow()
  expect((await names()).gateways).toEqual(['a', 'b', 'taken'])
})

test('begins anew where another writer took what the list holds, so that the work itself is refused', async () => {
  const { recorder, ledger } = partsOn(databases)
  let rounds = 0
  const work = async () => {
    rounds += 1
    await recorder.change(ofLedger('shared'))
    if (rounds === 1) await databases.ledger.write([secret('shared')])
    await ledger.read('select 1')
  }
  await expect(recorder.together(work, { dryRun: false })).rejects.toThrow('UNIQUE')
  expect(rounds).toBe(2)
  expect(await names()).toEqual({ ...nothing, secrets: ['shared'] })
})

class Crash extends Error {}

/** Databases on which the process dies at an operation: before it takes effect, or right after. */
function dying({ state, ledger }: Both, at: number, before: boolean): Both {
  let operation = 0
  const guarded = (database: Database): Database => {
    const step = async <Result>(work: () => Promise<Result>): Promise<Result> => {
      operation += 1
      const own = operation
      if (own > at || (own === at && before)) throw new Crash()
      const result = await work()
      if (own === at) throw new Crash()
      return result
    }
    return {
      ...database,
      write: (statements) => step(() => database.write(statements)),
      writeAndRead: <Row>(statements: readonly Statement[]) => step(() => database.writeAndRead<Row>(statements)),
      read: <Row>(sql: string, args?: Statement['args']) => step(() => database.read<Row>(sql, args)),
      readAfter: (statements, read) => step(() => database.readAfter(statements, read)),
    }
  }
  return { state: guarded(state), ledger: guarded(ledger) }
}

test('all is done or nothing, wherever the process dies', async () => {
  const outcomes = new Set<number>()
  for (let at = 1; at <= 24; at += 1) {
    for (const before of [true, false]) {
      await emptyTestDatabases(databases)
      const { recorder } = partsOn(dying(databases, at, before))
      const work = async () => {
        await recorder.change(ofLedger('team'))
        await recorder.change(gateway('a'))
        await recorder.change(gateway('b'))
      }
      await recorder.together(work, { dryRun: false }).catch((error: unknown) => {
        if (!(error instanceof Crash)) throw error
      })
      await databases.ledger.write([{ sql: 'update pending_changes set created_at = 0', args: [] }])
      await partsOn(databases).recorder.applyPending()
      const found = await names()
      outcomes.add(found.gateways.length)
      expect([
        nothing,
        { gateways: ['a', 'b'], secrets: ['a', 'b', 'team'], events: ['team', 'a', 'b'], pending: 0 },
      ]).toContainEqual(found)
    }
  }
  expect([...outcomes].toSorted()).toEqual([0, 2])
})

test('a change of another control plane that would break a guard of a list waits until the list is finished', async () => {
  const team: Statement = { sql: "delete from secrets where name = 'team'", args: [] }
  const teamIsThere: Statement = {
    sql: "insert into guards (holds) select 0 where not exists (select 1 from secrets where name = 'team')",
    args: [],
  }
  const outcomes = new Set<string>()
  for (let at = 1; at <= 24; at += 1) {
    await emptyTestDatabases(databases)
    await databases.ledger.write([secret('team')])
    const { recorder } = partsOn(dying(databases, at, false))
    const work = async () => {
      await recorder.change(gateway('member', { state: [], ledger: [teamIsThere, secret('member')] }))
      await recorder.change(gateway('a'))
    }
    await recorder.together(work, { dryRun: false }).catch((error: unknown) => {
      if (!(error instanceof Crash)) throw error
    })
    const other = partsOn(databases).recorder
    const deletion = other.change(gateway('gone', { state: [], ledger: [teamIsThere, team] }))
    await Promise.race([deletion, Bun.sleep(40)])
    await databases.ledger.write([{ sql: 'update pending_changes set created_at = 0', args: [] }])
    await other.applyPending()
    await deletion
    const { gateways, secrets, pending } = await names()
    outcomes.add(JSON.stringify([gateways, secrets, pending]))
  }
  expect([...outcomes].toSorted()).toEqual(['[["a"],["a","member"],0]', '[[],[],0]'])
})
