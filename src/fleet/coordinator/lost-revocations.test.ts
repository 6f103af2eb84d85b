import { Database } from 'bun:sqlite'
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { stateMigrations } from '../../store/schema/migrate.ts'
import { findTokensToRevokeAgain } from './lost-revocations.ts'

let directory: string
let former: string
let built: string

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'gatehouse-revived-'))
  former = join(directory, 'former.db')
  built = join(directory, 'built.db')
  within(former, (database) => {
    for (const { sql } of stateMigrations) database.run(sql)
    database.run("update state_head set history = 'h'")
  })
  change(former, 'made', "insert into change_log select 'x', 0, 1, 1, 1 where 0")
  for (const hash of ['a', 'b', 'c']) change(former, `add ${hash}`, tokenRow(hash))
})
afterEach(() => {
  rmSync(directory, { recursive: true, force: true })
})

function within(file: string, work: (database: Database) => void): void {
  const database = new Database(file, { create: true })
  try {
    work(database)
  } finally {
    database.close()
  }
}

const tokenRow = (hash: string) =>
  `insert into tokens (id, hash, purpose, principal_type, key_class, roles, policy_ids, access_policy_ids, metadata_trust,
     owner_kind, owner_id, account_ids, version)
   select '${hash}', '${hash}', 'general', 'api_token', 'durable', '[]', '[]', '[]', 'none', 'team', 't', '[]', version
   from state_head`

const accessTokenRow = (hash: string) =>
  `insert into oauth_tokens (id, hash, grant_id, client_id, user_id, scope, permissions, team_ids, resources, expires_at,
     version)
   select '${hash}', '${hash}', 'g', 'c', 'u', '[]', '[]', '[]', '[]', 9e12, version from state_head`

const revocation = (hash: string) =>
  `update tokens set revoked_at = 1, version = (select version from state_head) where hash = '${hash}'`

function change(file: string, event: string, sql: string): void {
  within(file, (database) => {
    database.transaction(() => {
      database.run('update state_head set version = version + 1, nonce = ?', [event])
      database.run('insert into change_log select ?, version, 1, 1, 1 from state_head', [event])
      database.run(sql)
    })()
  })
}

const record = (history: string, version: number, ...hashes: string[]) => ({
  position: { history, version },
  acknowledged: null,
  hashes,
})

test('finds nothing lost in a copy that continues the former one', async () => {
  change(former, 'revoke a', revocation('a'))
  cpSync(former, built)
  expect(await findTokensToRevokeAgain(built, former, [])).toEqual([])
  change(built, 'revoke b', revocation('b'))
  expect(await findTokensToRevokeAgain(built, former, [record('h', 6, 'b')])).toEqual([])
})

test('finds tokens that were revoked after the copy was made, by the former copy or a revocation record', async () => {
  cpSync(former, built)
  change(former, 'revoke a', revocation('a'))
  expect(await findTokensToRevokeAgain(built, former, [record('h', 6, 'b')])).toEqual([
    {
      history: 'h',
      revocations: [
        { hash: 'b', version: 6 },
        { hash: 'a', version: 5 },
      ],
    },
  ])
  expect(await findTokensToRevokeAgain(built, null, [record('h', 5, 'a')])).toEqual([
    { history: 'h', revocations: [{ hash: 'a', version: 5 }] },
  ])
})

test('a token is lost only if the copy has none of the versions of a combined record', async () => {
  cpSync(former, built)
  for (const event of ['one', 'two']) change(built, event, 'select 1')
  const caughtUp = (since: number) => [{ ...record('h', 6, 'c'), since }]
  // It was made at version 4: a worker that learned of it with later changes, as of version 6, has lost nothing.
  expect(await findTokensToRevokeAgain(built, null, caughtUp(3))).toEqual([])
  expect(await findTokensToRevokeAgain(built, null, caughtUp(4))).toEqual([
    { history: 'h', revocations: [{ hash: 'c', version: 5 }] },
  ])
})

test('finds access tokens of applications too', async () => {
  for (const hash of ['x', 'y', 'z']) change(former, `add ${hash}`, accessTokenRow(hash))
  cpSync(former, built)
  change(former, 'revoke x', revocation('x').replace('tokens', 'oauth_tokens'))
  expect(await findTokensToRevokeAgain(built, former, [record('h', 9, 'y')])).toEqual([
    {
      history: 'h',
      revocations: [
        { hash: 'y', version: 9 },
        { hash: 'x', version: 8 },
      ],
    },
  ])
})

test('finds a token that was changed otherwise since and has a higher version', async () => {
  cpSync(former, built)
  change(former, 'revoke a', revocation('a'))
  change(former, 'revoke c', revocation('c'))
  for (const event of ['one', 'two', 'three']) change(built, event, 'select 1')
  change(built, 'revoke c again', revocation('c'))
  expect(await findTokensToRevokeAgain(built, former, [])).toEqual([
    { history: 'h', revocations: [{ hash: 'a', version: 5 }] },
  ])
})

test('finds every refused token that a copy with another history accepts', async () => {
  cpSync(former, built)
  within(built, (database) => database.run("update state_head set history = 'other', version = 100"))
  change(former, 'revoke a', revocation('a'))
  change(former, 'delete b', "update tokens set deleted = 1 where hash = 'b'")
  within(built, (database) => database.run("update tokens set deleted = 1 where hash = 'b'"))
  expect(await findTokensToRevokeAgain(built, former, [record('h', 4, 'unheard of')])).toEqual([
    { history: 'h', revocations: [{ hash: 'a', version: 5 }] },
  ])
})
