import { Database } from 'bun:sqlite'
import { beforeEach, expect, test } from 'bun:test'
import { stateMigrations } from '../../store/schema/migrate.ts'
import { McpView } from './mcp-view.ts'

let database: Database
beforeEach(() => {
  database = new Database(':memory:')
  for (const { sql } of stateMigrations) database.run(sql)
  const insert = `insert into mcp_servers (id, name, url, approval, enabled, position, version, deleted) values `
  database.run(`${insert} ('a', 'first', 'https://a/', 'first_use', 1, 2, 1, 0), ('b', 'off', 'https://b/', 'required', 0, 3, 1, 0),
    ('c', 'gone', 'https://c/', 'required', 1, 4, 1, 1), ('d', 'made before', 'https://d/', 'required', 1, 1, 1, 0)`)
  database.run(`insert into mcp_approvals (id, server_id, digest, version, deleted)
    values ('1', 'a', 'x', 1, 0), ('2', 'a', 'y', 1, 1), ('3', 'd', 'z', 1, 0)`)
  database.run("insert into mcp_baselines (id, server_id, kind, made_at, version) values ('a/tool', 'a', 'tool', 1, 1)")
})

test('a gateway sees the servers in use, with what is approved of each', () => {
  const view = new McpView()
  view.read(database, { a: 'key' }, true)
  expect(view.servers()).toMatchObject([
    { id: 'd', approved: new Set(['z']), known: new Set(['3']), baselines: new Map(), dataKey: null },
    { id: 'a', approved: new Set(['x']), known: new Set(['1']), baselines: new Map([['tool', 1]]), dataKey: 'key' },
  ])
  expect(view.closed).toEqual(['d'])
})

test('reads servers again when a row, a key or the history changes, and reports that', async () => {
  const view = new McpView()
  let told = 0
  view.onChange(() => told++)
  const keys = {}
  view.read(database, keys, true)
  const before = view.servers()
  view.read(database, keys, false)
  expect(view.servers()).toBe(before)
  database.run("update mcp_approvals set digest = 'new', version = 2 where id = '1'")
  view.read(database, keys, false)
  expect(view.servers()[1]?.approved).toEqual(new Set(['new']))
  view.read(database, { d: 'key' }, false)
  expect(view.closed).toEqual(['a'])
  view.read(database, { d: 'key' }, true)
  await new Promise((resolve) => setImmediate(resolve))
  expect(told).toBe(4)
})
