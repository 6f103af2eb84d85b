/**
 * Preloaded by `bun test --preload`: in the tests that follow the log of every ledger is in ClickHouse, as a whole. Before
 * anything is read, all that has been appended is moved there.
 */
import { mock } from 'bun:test'
import { ClickHouseLogLevel, createClient } from '@clickhouse/client'
import { startClickHouse } from '../../../test/fakes/clickhouse.ts'
import { silentLog } from '../../lib/log/log.ts'
import type { Database } from '../../store/open.ts'
import { Archive } from '../clickhouse/archive.ts'
import { moveOldRecords } from '../clickhouse/move.ts'
import { movedLog } from '../clickhouse/moved-log.ts'
import { clickhouseSchema } from '../clickhouse/schema.ts'
import type { EventLog } from '../engine/event-log.ts'
import type { LogQuery } from '../log/log-query.ts'

const server = startClickHouse()
/** By what a ledger and a test's wrapper of it have in common. */
const logs = new Map<Database['flush'], EventLog>()

/** Each ledger has a database of its own. */
async function archiveOf(database: string): Promise<Archive> {
  const options = { url: server.url, log: { level: ClickHouseLogLevel.OFF } }
  await createClient(options).command({ query: `CREATE DATABASE ${database}` })
  const client = createClient({ ...options, database })
  await client.command({ query: clickhouseSchema })
  return new Archive(client)
}

function logInClickHouse(ledger: Database): EventLog {
  let connected: Promise<Archive> | null = null
  const name = `ledger_${logs.size}`
  /** The log, once everything has moved. */
  const moved = async (): Promise<EventLog> => {
    connected ??= archiveOf(name)
    const archive = await connected
    const clock = { now: () => Number.MAX_SAFE_INTEGER }
    await moveOldRecords({ ledger, archive, clock, log: silentLog, keepMilliseconds: 0 })
    return movedLog(ledger, archive)
  }
  const outside = async () => {
    const found = (await moved()).outside
    if (found === null) throw new Error('Records are outside of the ledger')
    return found
  }
  return {
    outside: {
      boundary: async () => await (await outside()).boundary(),
      oldest: async () => await (await outside()).oldest(),
      holdsReceivedBefore: async (instant) => await (await outside()).holdsReceivedBefore(instant),
      firstBehind: async (chain, seq) => await (await outside()).firstBehind(chain, seq),
      async *stored(range) {
        yield* (await outside()).stored(range)
      },
      remove: async (before) => await (await outside()).remove(before),
    },
    async *parts(query: LogQuery) {
      yield* (await moved()).parts(query)
    },
    async *records(range) {
      yield* (await moved()).records(range)
    },
    async *chained(range) {
      yield* (await moved()).chained(range)
    },
    chains: () => ({
      async *records(chain, range) {
        yield* (await moved()).chains().records(chain, range)
      },
      digestAt: async (chain, seq) => await (await moved()).chains().digestAt(chain, seq),
      firstSince: async (chain, receivedAt) => await (await moved()).chains().firstSince(chain, receivedAt),
      points: async (chain, seqs) => await (await moved()).chains().points(chain, seqs),
    }),
    oldest: async () => await (await moved()).oldest(),
    times: async () => await (await moved()).times(),
    nextTime: async (from) => await (await moved()).nextTime(from),
    timeAt: async (position) => await (await moved()).timeAt(position),
    arrived: async (behind, window) => await (await moved()).arrived(behind, window),
  }
}

function logOf(ledger: Database): EventLog {
  const known = logs.get(ledger.flush)
  if (known !== undefined) return known
  const log = logInClickHouse(ledger)
  logs.set(ledger.flush, log)
  return log
}

mock.module('../engine/log-of.ts', () => ({
  logOf,
  async *eventsOf(ledger: Database, query: LogQuery) {
    for await (const { events } of logOf(ledger).parts(query)) yield* events
  },
}))
