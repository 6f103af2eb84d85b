/** OAuth access tokens as a gateway reads them from the state file, beside API tokens. */
import { Database } from 'bun:sqlite'
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { stateMigrations } from '../../store/schema/migrate.ts'
import { temporaryDirectory } from '../../store/testing/store.ts'
import { FileStateView } from './state-view.ts'

let directory: string
let writer: Database
let view: FileStateView

beforeEach(() => {
  directory = temporaryDirectory()
  const file = join(directory, 'state.db')
  writer = new Database(file, { create: true })
  writer.run('pragma journal_mode = wal')
  for (const { sql } of stateMigrations) writer.run(sql)
  writer.run("insert or replace into state_head values (1, 1, 'nonce-1', 'history', '0.2.0', 0)")
  writer.run("insert into gateways (id, name, version) values ('g', 'gateway', 0)")
  view = new FileStateView(file)
})
afterEach(() => {
  view.close()
  writer.close()
  rmSync(directory, { recursive: true, force: true })
})

const insert = (hash: string) =>
  writer.run(
    `insert into oauth_tokens (id, hash, grant_id, client_id, user_id, scope, permissions, team_ids, resources,
       expires_at, version) values (?1, ?1, 'grant', 'client', 'ada', '["gateway:invoke","events:read"]',
       '["gateway:invoke"]', '["t1","t2"]', '["https://gateway"]', 99, 1)`,
    [hash],
  )

const change = (version: number, sql: string) =>
  writer.transaction(() => {
    writer.run('update state_head set version = ?, nonce = ?', [version, `nonce-${version}`])
    writer.run(sql)
  })()

test("sees an access token as soon as it is committed, as its user's", async () => {
  await view.load('g', {})
  expect(view.token('a')).toBeNull()
  insert('a')
  expect(view.token('a')).toMatchObject({
    userId: 'ada',
    ownerKind: 'user',
    ownerId: 'ada',
    eventTeamId: 't1',
    teamId: null,
    roles: [],
    accounts: [],
    expiresAt: 99,
    delegation: {
      clientId: 'client',
      scope: ['gateway:invoke', 'events:read'],
      permissions: ['gateway:invoke'],
      resources: ['https://gateway'],
    },
  })
})

test('a cached token takes over changes with the next refresh', async () => {
  await view.load('g', {})
  for (const hash of ['a', 'b']) insert(hash)
  for (const hash of ['a', 'b']) view.token(hash)
  change(2, "update oauth_tokens set permissions = '[]', revoked_at = 5, version = 2 where id = 'a'")
  await view.refresh()
  expect(view.token('a')).toMatchObject({ revokedAt: 5, delegation: { permissions: [] } })
  expect(view.token('b')).toMatchObject({ revokedAt: null })
})
