/** What is said of a ClickHouse that cannot keep events, at a start and later. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { ClickHouseLogLevel, createClient } from '@clickhouse/client'
import { type ClickHouseServer, startClickHouse } from '../../../test/fakes/clickhouse.ts'
import { type TemporaryStore, temporaryStore } from '../../store/testing/store.ts'
import { archiveReport } from './archive-state.ts'
import { type ConnectedArchive, connectArchive } from './connect.ts'
import { clickhouseSchema, recordsTable } from './schema.ts'

const password = 'word-of-clickhouse'
let server: ClickHouseServer
let store: TemporaryStore
beforeAll(async () => {
  server = startClickHouse({ login: `gatehouse:${password}` })
  store = await temporaryStore()
})
afterAll(async () => {
  await server.stop()
  store.remove()
})

const settings = (change: object = {}) => ({
  ...{ events_url: server.url, events_user: 'gatehouse', events_password: password },
  ...change,
})

async function connected(change: object = {}): Promise<ConnectedArchive> {
  const archive = await connectArchive(settings(change))
  if (archive === null) throw new Error('There is an address')
  return archive
}

const run = async (statement: string): Promise<void> => {
  const client = createClient({
    url: server.url,
    username: 'gatehouse',
    password,
    log: { level: ClickHouseLogLevel.OFF },
  })
  await client.command({ query: statement })
  await client.close()
}

test('connects to nothing without an address', async () => {
  expect(await connectArchive({ events_url: undefined, events_user: 'default', events_password: undefined })).toBeNull()
})

test('refuses to start with a wrong password, and does not say it', async () => {
  const error = await connectArchive(settings({ events_password: 'wrong-word' })).catch((thrown: unknown) => thrown)
  expect(error).toMatchObject({ code: 'invalid_parameter', param: 'events_password' })
  expect(String(error)).toContain('ClickHouse refuses the user that is to keep events. Set SERVICE_EVENTS_USER')
  expect(String(error)).not.toContain('wrong-word')
})

test('refuses to start where there is no table, or a table of another version', async () => {
  await expect(connected()).rejects.toThrow('has no table for events in this database. Make it: gatehouse install')
  await run(clickhouseSchema)
  const { archive, close } = await connected()
  expect(await archive.table.state()).toBe('ready')
  await run(`ALTER TABLE ${recordsTable} MODIFY COMMENT 'Gatehouse events, schema 0'`)
  expect(await archive.table.state()).toBe('other_schema')
  await close()
  await expect(connected()).rejects.toThrow('The table of ClickHouse is of another version of Gatehouse')
})

test('starts while ClickHouse is away', async () => {
  const nobody = Bun.serve({ port: 0, fetch: () => new Response() })
  const { port } = nobody
  await nobody.stop(true)
  const { archive, close } = await connected({ events_url: `http://127.0.0.1:${port}` })
  expect(await archiveReport(store.ledger, archive, Date.now())).toEqual({ state: 'away', records: 0, seconds: 0 })
  await expect(archive.bounds(1)).rejects.toThrow('ClickHouse, which keeps older events, did not answer')
  await close()
})

test('waits three seconds for a ClickHouse that hangs, and then for none of the next calls', async () => {
  const hanging = Bun.serve({ port: 0, idleTimeout: 0, fetch: () => new Promise<Response>(() => undefined) })
  const began = performance.now()
  const { archive, close } = await connected({ events_url: `http://127.0.0.1:${hanging.port}` })
  expect(performance.now() - began).toBeGreaterThan(2500)
  const again = performance.now()
  await expect(archive.points('chain', [1], 10)).rejects.toThrow('did not answer')
  await expect(archive.bounds(10)).rejects.toThrow('did not answer')
  expect(performance.now() - again).toBeLessThan(1000)
  await close()
  await hanging.stop(true)
}, 20_000)
