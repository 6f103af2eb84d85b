/** What must hold of a fleet after whatever happened to it, each thing counted from outside. */
import { Database } from 'bun:sqlite'
import { readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { recordedEvents } from '../../src/events/testing/recorded.ts'
import { until } from '../support/eventually.ts'
import type { FleetUnderTest } from './fleet.ts'
import type { FleetGateway } from './gateway.ts'
import type { Answer } from './load.ts'
import { start } from './process.ts'

export interface Expected {
  answers: readonly Answer[]
  /** Tokens and the instants after which no gateway may accept them. */
  ended: ReadonlyMap<string, number>
  /** Tokens and how many requests they have in all. */
  limits: ReadonlyMap<string, number>
  /** The gateways that run. */
  gateways: readonly FleetGateway[]
}

export interface Counted {
  answers: number
  accepted: number
  refused: number
  unanswered: number
  acceptedTooLate: number
  limitPassedBy: number
  eventsMissing: number
  eventsTwice: number
  replicasUnequal: number
  verifyExitCode: number
}

/** What is counted where all holds. */
export const sound = {
  acceptedTooLate: 0,
  limitPassedBy: 0,
  eventsMissing: 0,
  eventsTwice: 0,
  replicasUnequal: 0,
  verifyExitCode: 0,
} satisfies Partial<Counted>

/** How long a fleet has to come together again. */
const settleMs = 90_000

/** Waits until the fleet is at rest, then counts. */
export async function count(fleet: FleetUnderTest, expected: Expected): Promise<Counted> {
  const { answers, ended, limits, gateways } = expected
  const accepted = answers.filter(({ status }) => status === 200)
  const tooLate = accepted.filter(({ token, sentAt }) => sentAt > (ended.get(token) ?? Number.POSITIVE_INFINITY))
  const beyond = [...limits].map(([token, most]) => accepted.filter((one) => one.token === token).length - most)
  const ids = accepted.map(({ requestId }) => requestId)
  const missing = async () => (await eventCounts(fleet, ids)).filter((found) => found === 0).length
  let unequal: string[] = []
  const rest = { withinMs: settleMs, everyMs: 500 }
  const passing = () => undefined
  // Where it never comes true, the count says so.
  await until('all events are in the ledger', async () => (await missing()) === 0, rest).catch(passing)
  // Equal once is equal: the primary goes on, so that a second look may find one of two versions here and there.
  await until(
    'all replicas are as the primary',
    async () => {
      unequal = await unequalReplicas(fleet, gateways)
      return unequal.length === 0
    },
    rest,
  ).catch(passing)
  if (unequal.length > 0) console.error(unequal)
  const found = await eventCounts(fleet, ids)
  return {
    answers: answers.length,
    accepted: accepted.length,
    refused: answers.filter(({ status }) => status !== 200 && status !== 0).length,
    unanswered: answers.filter(({ status }) => status === 0).length,
    acceptedTooLate: tooLate.length,
    limitPassedBy: beyond.reduce((sum, by) => sum + Math.max(0, by), 0),
    eventsMissing: found.filter((times) => times === 0).length,
    eventsTwice: found.filter((times) => times > 1).length,
    replicasUnequal: unequal.length,
    verifyExitCode: await verify(fleet),
  }
}

/** How often the ledger has the outcome of each request. */
async function eventCounts({ primary }: FleetUnderTest, requestIds: readonly string[]): Promise<number[]> {
  const times = new Map<string | null, number>()
  for (const { request_id: id } of await recordedEvents(primary.log, 'gateway.request.outcome')) {
    times.set(id, (times.get(id) ?? 0) + 1)
  }
  return requestIds.map((id) => times.get(id) ?? 0)
}

/** Those that are not as the primary, with where they stand and what of them is another. */
async function unequalReplicas({ primary }: FleetUnderTest, gateways: readonly FleetGateway[]): Promise<string[]> {
  const ofPrimary = await contentOf((sql) => primary.read('state', sql))
  const said = gateways.map(async ({ directory }) => {
    const content = await contentOfReplica(directory)
    if (typeof content === 'string') return `${directory}: ${content}`
    const others = [...ofPrimary].filter(([table, digest]) => content.get(table) !== digest).map(([table]) => table)
    return others.length === 0 ? [] : `${directory}: ${others.join()} at ${content.get('state_head')}`
  })
  return (await Promise.all(said)).flat()
}

async function contentOfReplica(directory: string): Promise<Map<string, string> | string> {
  const replica = join(directory, 'gateway/replica')
  try {
    using database = new Database(join(replica, readlinkSync(join(replica, 'current')), 'state.db'), { readonly: true })
    return await contentOf(async (sql) => database.query<Record<string, unknown>, []>(sql).all())
  } catch (error) {
    return `It cannot be read: ${String(error)}`
  }
}

/** By table all its rows, in an order of their own, as a digest; the head as it is. */
async function contentOf(read: (sql: string) => Promise<Record<string, unknown>[]>): Promise<Map<string, string>> {
  const tables = await read("select name from sqlite_master where type = 'table'")
  const content = new Map<string, string>()
  for (const name of tables.map(({ name: found }) => String(found)).sort()) {
    if (name.startsWith('sqlite_') || name.startsWith('libsql_')) continue
    const rows = (await read(`select * from "${name}"`)).map((row) => JSON.stringify(row)).sort()
    const whole = rows.join('\n')
    content.set(name, name === 'state_head' ? whole : new Bun.CryptoHasher('sha256').update(whole).digest('hex'))
  }
  return content
}

async function verify({ planes }: FleetUnderTest): Promise<number> {
  const [{ baseUrl, adminToken }] = planes
  const verifying = await start(['events', 'verify'], { SERVICE_API_URL: baseUrl, SERVICE_API_TOKEN: adminToken })
  const code = await verifying.exited
  if (code !== 0) console.error(verifying.stdout(), verifying.stderr())
  return code
}
