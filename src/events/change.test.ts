import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { Failure } from '../failure.ts'
import type { Clock } from '../lib/clock.ts'
import { silentLog } from '../lib/log/log.ts'
import type { Database } from '../store/open.ts'
import type { Statement } from '../store/statement.ts'
import { createRecorder } from './change.ts'
import { chainNext, chainStart, controlPlaneChain } from './log/chain.ts'
import { digestAt } from './log/read-records.ts'
import { type Change, type Recorder, versionArgument } from './recorder.ts'
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

const announced: { version: number; revoked: readonly string[] }[] = []
const recorderOn = ({ state, ledger }: { state: Database; ledger: Database }): Recorder =>
  createRecorder({
    state,
    ledger,
    announce: (head, revoked) => void announced.push({ version: head.version, revoked }),
    clock,
    environment: 'staging',
    log: silentLog,
  })

/** A change that makes a gateway in the state and a row of the same name in the ledger, with the version as its value. */
function changeOf(name: string, more: Partial<Change> = {}): Change {
  return {
    event: testEvent({ event_type: 'catalog.created', details: { name } }),
    state: [
      {
        sql: 'insert into gateways (id, name, version) values (?, ?, (select version from state_head))',
        args: [name, name],
      },
    ],
    ledger: [{ sql: 'insert into secrets (name, sealed, created_at) values (?, ?, 0)', args: [name, versionArgument] }],
    ...more,
  }
}

interface Found {
  gateways: { id: string; version: number }[]
  secrets: { name: string; sealed: string }[]
  events: { seq: number; digest: string | null; text: string }[]
  pending: unknown[]
}

const found = async (): Promise<Found> => ({
  gateways: await databases.state.read('select id, version from gateways order by id'),
  secrets: await databases.ledger.read('select name, sealed from secrets order by name'),
  events: await Promise.all(
    (await recordedChains(databases.ledger)).map(async ({ chain, seq, text }) => ({
      ...{ seq, text },
      digest: await digestAt(databases.ledger, chain, seq),
    })),
  ),
  pending: await databases.ledger.read('select event_id from pending_changes'),
})

/** State, ledger and events tell the same story, and the chain holds. */
function expectAgreement({ gateways, secrets, events, pending }: Found): void {
  expect(pending).toEqual([])
  expect(secrets.map(({ name, sealed }) => ({ id: name, version: Number(sealed) }))).toEqual(gateways)
  const recorded = events.map(({ text }) => JSON.parse(text))
  const told = recorded.map(({ details, config_version }) => ({ id: details.name, version: config_version }))
  expect(told.sort((one, other) => one.id.localeCompare(other.id))).toEqual(gateways)
  let digest = chainStart(controlPlaneChain)
  for (const [index, event] of events.entries()) {
    digest = chainNext(digest, index + 1, event.text)
    expect(event).toMatchObject({ seq: index + 1, digest })
  }
}

class Crash extends Error {}

/** Databases on which the process dies at a given operation: before it takes effect, or right after. */
function dying({ state, ledger }: TestDatabases, at: number, before: boolean): { state: Database; ledger: Database } {
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
      read: <Row>(sql: string, args?: (string | number | null)[]) => step(() => database.read<Row>(sql, args)),
    }
  }
  return { state: guarded(state), ledger: guarded(ledger) }
}

describe('a change', () => {
  test('takes a name once, however many want it at once, and frees the name if nothing was made', async () => {
    const refusal = new Failure('conflict', { param: 'name' })
    const claim = (own: string) => ({
      key: 'gateway wanted',
      taken: { sql: "select 1 from secrets where name like 'wanted%' and name <> ?", args: [own] },
      refusal,
    })
    const wanted = (place: string) => changeOf(`wanted-${place}`, { claim: claim(`wanted-${place}`) })
    const controlPlanes = [recorderOn(databases), recorderOn(databases)]
    const outcomes = await Promise.allSettled(
      ['1', '2', '3', '4'].map((place, index) => controlPlanes[index % 2]?.change(wanted(place))),
    )
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    for (const outcome of outcomes) if (outcome.status === 'rejected') expect(outcome.reason).toBe(refusal)
    const result = await found()
    expectAgreement(result)
    expect(result.gateways).toHaveLength(1)
    await expect(recorderOn(databases).change(wanted('5'))).rejects.toBe(refusal)
    await emptyTestDatabases(databases)
    await expect(recorderOn(dying(databases, 2, true)).change(wanted('6'))).rejects.toThrow(Crash)
    await expect(recorderOn(databases).change(wanted('7'))).rejects.toBe(refusal)
    await databases.ledger.write([{ sql: 'update pending_changes set created_at = 0', args: [] }])
    await recorderOn(databases).applyPending()
    await recorderOn(databases).change(wanted('7'))
    expectAgreement(await found())
  })

  test('is in the state, in the ledger and in the chain, each with the same version', async () => {
    announced.length = 0
    const { head } = await recorderOn(databases).change(changeOf('a', { revoked: ['hash'] }))
    const result = await found()
    expectAgreement(result)
    expect(result.gateways).toEqual([{ id: 'a', version: head.version }])
    expect(head).toEqual({ ...head, history: 'history', nonce: expect.stringMatching(/^[0-9a-f-]{36}$/) })
    expect(announced).toEqual([{ version: head.version, revoked: ['hash'] }])
  })

  test('records who made it and where, also for a change of the ledger alone', async () => {
    const recorder = recorderOn(databases)
    const made = await recorder.change(changeOf('a'))
    await recorder.change({ event: testEvent(), state: [], ledger: [] })
    const events = (await found()).events.map(({ text }) => JSON.parse(text))
    const configuration = { config_version: made.head.version, config_id: made.head.nonce, environment: 'staging' }
    expect(events).toMatchObject([{ event_id: made.head.nonce, ...configuration }, configuration])
  })

  test('is refused as unavailable if the ledger lost its chain head, and leaves nothing', async () => {
    const recorder = recorderOn(databases)
    await recorder.append([testEvent({ event_type: 'token.created' })])
    await databases.ledger.write([{ sql: 'delete from chains', args: [] }])
    const refused = await recorder.append([testEvent({ event_type: 'token.created' })]).catch((thrown) => thrown)
    expect(refused).toMatchObject({ code: 'dependency_unavailable' })
    expect((await found()).events).toHaveLength(1)
  })

  test('leaves nothing anywhere if its guard fails', async () => {
    const recorder = recorderOn(databases)
    await recorder.change(changeOf('a'))
    const before = await found()
    const guard = { sql: 'select not exists (select 1 from gateways where id = ?)', args: ['a'] }
    const refused = recorder.change(changeOf('b', { guard }))
    expect(refused).rejects.toMatchObject({ code: 'conflict' })
    await refused.catch(() => undefined)
    expect(await found()).toEqual(before)
  })

  test('leaves nothing anywhere if a statement breaks a constraint, and says so', async () => {
    const recorder = recorderOn(databases)
    await recorder.change(changeOf('a'))
    const before = await found()
    expect(await recorder.change(changeOf('a')).catch((error: unknown) => error)).toBeInstanceOf(Error)
    expect(await found()).toEqual(before)
  })

  test('is made and recorded once when it reaches the state twice because an answer was lost', async () => {
    const { state } = databases
    const twice: Database = {
      ...state,
      async writeAndRead<Row>(statements: readonly Statement[]) {
        await state.writeAndRead<Row>(statements)
        return await state.writeAndRead<Row>(statements)
      },
    }
    const { head } = await recorderOn({ ...databases, state: twice }).change(changeOf('a'))
    const result = await found()
    expectAgreement(result)
    expect(result.gateways).toEqual([{ id: 'a', version: head.version }])
    expect(result.events).toHaveLength(1)
  })

  test('of the ledger alone raises no version and needs no pending row', async () => {
    const head = await databases.state.read('select version from state_head')
    await recorderOn(databases).change(changeOf('a', { state: [] }))
    expect(await databases.state.read('select version from state_head')).toEqual(head)
    const { secrets, events, pending } = await found()
    expect(secrets).toHaveLength(1)
    expect(events).toHaveLength(1)
    expect(pending).toEqual([])
  })

  test('runs beside others on two control planes without losing any or forking the chain', async () => {
    const recorders = [recorderOn(databases), recorderOn(databases)]
    const names = Array.from({ length: 24 }, (_, index) => `gateway-${String(index).padStart(2, '0')}`)
    await Promise.all(names.map((name, index) => recorders[index % 2]?.change(changeOf(name))))
    const result = await found()
    expect(result.gateways.map(({ id }) => id)).toEqual(names)
    expectAgreement(result)
  })
})

describe('applying pending changes', () => {
  test('brings event and state together wherever the process died', async () => {
    for (let at = 1; at <= 8; at += 1) {
      for (const before of [true, false]) {
        await emptyTestDatabases(databases)
        await recorderOn(dying(databases, at, before))
          .change(changeOf('a'))
          .catch(crashed)
        await age(5000)
        await recorderOn(databases).applyPending()
        expectAgreement(await found())
      }
    }
  })

  test('may itself die anywhere, any number of times', async () => {
    const death = fc.record({ at: fc.integer({ min: 1, max: 9 }), before: fc.boolean() })
    await fc.assert(
      fc.asyncProperty(fc.array(death, { minLength: 1, maxLength: 4 }), death, async (deaths, settling) => {
        await emptyTestDatabases(databases)
        for (const [index, { at, before }] of deaths.entries()) {
          await recorderOn(dying(databases, at, before))
            .change(changeOf(`gateway-${index}`))
            .catch(crashed)
        }
        await age(5000)
        await recorderOn(dying(databases, settling.at, settling.before))
          .applyPending()
          .catch(crashed)
        await recorderOn(databases).applyPending()
        expectAgreement(await found())
      }),
      { numRuns: 40 },
    )
  })

  test('leaves a recent pending change to its writer', async () => {
    await recorderOn(dying(databases, 1, false))
      .change(changeOf('a'))
      .catch(crashed)
    await age(4000)
    await recorderOn(databases).applyPending()
    expect((await found()).pending).toHaveLength(1)
  })

  test('fails a writer that was only slow, and does not repeat a faster one', async () => {
    const recorder = recorderOn(databases)
    const slowAt = (operation: 'state' | 'ledger'): { state: Database; ledger: Database } => {
      let writes = 0
      const settledFirst = (database: Database, nth: number): Database => {
        const applyPending = async () => {
          writes += 1
          if (writes !== nth) return
          await age(6000)
          await recorder.applyPending()
        }
        return {
          ...database,
          async write(statements) {
            await applyPending()
            await database.write(statements)
          },
          async writeAndRead<Row>(statements: readonly Statement[]) {
            await applyPending()
            return await database.writeAndRead<Row>(statements)
          },
        }
      }
      if (operation === 'state') return { ...databases, state: settledFirst(databases.state, 1) }
      return { ...databases, ledger: settledFirst(databases.ledger, 2) }
    }
    const late = await recorderOn(slowAt('state'))
      .change(changeOf('late'))
      .catch((error: unknown) => error)
    expect(late).toBeInstanceOf(Failure)
    expect(late).toMatchObject({ code: 'dependency_unavailable' })
    expect((await found()).gateways).toEqual([])
    await recorderOn(slowAt('ledger')).change(changeOf('settled'))
    const result = await found()
    expect(result.events).toHaveLength(1)
    expectAgreement(result)
  })

  test('announces again which tokens gateways must refuse', async () => {
    announced.length = 0
    await recorderOn(dying(databases, 2, false))
      .change(changeOf('a', { revoked: ['hash'] }))
      .catch(crashed)
    expect(announced).toEqual([])
    await age(5000)
    await recorderOn(databases).applyPending()
    expect(announced).toMatchObject([{ revoked: ['hash'] }])
  })
})

/** Lets time pass for pending changes, whose age is measured by the database's clock. */
const age = (milliseconds: number): Promise<void> =>
  databases.ledger.write([{ sql: 'update pending_changes set created_at = created_at - ?', args: [milliseconds] }])

const crashed = (error: unknown): void => {
  const causes = [error, error instanceof Error ? error.cause : null]
  if (!causes.some((cause) => cause instanceof Crash)) throw error
}

test('appends events without a change to the chain in order', async () => {
  const events = [testEvent({ event_type: 'auth.refused' }), testEvent({ event_type: 'auth.signed_in' })]
  await recorderOn(databases).append(events)
  const recorded = (await found()).events
  expect(recorded.map(({ text }) => JSON.parse(text))).toEqual(
    events.map((event) => ({ ...event, environment: 'staging' })),
  )
  expect(recorded.map(({ seq }) => seq)).toEqual([1, 2])
})
