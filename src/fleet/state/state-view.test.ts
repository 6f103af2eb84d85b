import { Database } from 'bun:sqlite'
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { seal } from '../../lib/seal.ts'
import { noPolicies } from '../../policies/chain.ts'
import { stateMigrations } from '../../store/schema/migrate.ts'
import { FileStateView } from './state-view.ts'

const schema = stateMigrations.map(({ sql }) => sql).join('\n')
const dataKey = Buffer.alloc(32, 7)
const keys = { p1: dataKey.toString('base64') }

let directory: string
let file: string
let writer: Database
let view: FileStateView

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'gatehouse-view-'))
  file = join(directory, 'state.db')
  writer = makeState(file, 'history-one')
  view = new FileStateView(file)
})

afterEach(() => {
  view.close()
  writer.close()
  rmSync(directory, { recursive: true, force: true })
})

function makeState(path: string, history: string, readsFrom = '0.2.0'): Database {
  const database = new Database(path, { create: true })
  database.run('pragma journal_mode = wal')
  database.run(schema)
  database.run('insert or replace into state_head values (1, 0, ?, ?, ?, 0)', ['nonce-0', history, readsFrom])
  database.run("insert into gateways (id, name, version) values ('g', 'gateway', 0)")
  return database
}

let nonce = 0
function change(apply: (version: number) => void): number {
  return writer.transaction(() => {
    writer.run('update state_head set version = version + 1, nonce = ?', [`nonce-${++nonce}`])
    const version = writer.query<{ version: number }, []>('select version from state_head').get()?.version ?? 0
    apply(version)
    return version
  })()
}

const addToken = (hash: string, version: number) =>
  writer.run(
    `insert into tokens (id, hash, purpose, principal_type, key_class, model_filter, roles, policy_ids,
       access_policy_ids, metadata_trust, owner_kind, owner_id, account_ids, version)
     values (?1, ?1, 'general', 'api_token', 'durable', '["a*"]', '["member"]', '[]', '[]', 'none', 'team', 't', '[]', ?2)`,
    [hash, version],
  )

const addProvider = (id: string, position: number, version: number) =>
  writer.run(
    'insert into providers (id, name, kind, sealed_credentials, position, version) values (?1, ?1, ?2, ?3, ?4, ?5)',
    [id, 'openai', seal(dataKey, JSON.stringify({ api_key: `key-${id}`, headers: { a: 'b' } }), id), position, version],
  )

describe('a view of the state', () => {
  test('never has a token without the limits it names, even before a refresh brings them', async () => {
    await view.load('g', keys)
    const made = change((version) =>
      writer.run("insert into access_policies (id, requests_per_minute, version) values ('p', 3, ?)", [version]),
    )
    change((version) => {
      addToken('one', version)
      writer.run(`update tokens set access_policy_ids = '["p"]' where hash = 'one'`)
    })
    expect(view.token('one')?.accessPolicyIds).toEqual(['p'])
    expect(view.limits.accessPolicies.get('p')?.requestsPerMinute).toBe(3)
    expect(view.version).toBeGreaterThan(made)
    change((version) => writer.run('update access_policies set requests_per_minute = 5, version = ?', [version]))
    change((version) => addToken('two', version))
    view.token('two')
    expect(view.limits.accessPolicies.get('p')?.requestsPerMinute).toBe(5)
    await view.refresh()
    expect(view.limits.accessPolicies.get('p')?.requestsPerMinute).toBe(5)
  })

  test('accepts no token by a state that it could read only in part', async () => {
    await view.load('g', keys)
    change((version) => {
      addProvider('p1', 1, version)
      writer.run("update providers set timeouts = 'damaged'")
      writer.run("insert into access_policies (id, requests_per_minute, version) values ('p', 3, ?)", [version])
      addToken('one', version)
    })
    for (const _attempt of [1, 2]) expect(() => view.token('one')).toThrow()
    await expect(view.refresh()).rejects.toThrow()
    writer.run('update providers set timeouts = null')
    expect(view.token('one')?.hash).toBe('one')
    expect(view.limits.accessPolicies.size).toBe(1)
    expect(view.providers()).toHaveLength(1)
  })

  test('keeps the whole former state when it can read only a part of the newer one', async () => {
    change((version) => addProvider('p1', 1, version))
    await view.load('g', keys)
    const before = [view.policies, view.limits, view.provider('p1'), view.version]
    change((version) => {
      writer.run(
        `insert into policies (id, kind, stages, targets, mode, when_broken, config, position, enabled, version)
          values ('p', 'request_limits', '["pre_request"]', '{}', 'enforce', 'deny', '{"max_tools":1}', 1, 1, ?)`,
        [version],
      )
      writer.run("insert into access_policies (id, requests_per_minute, version) values ('p', 3, ?)", [version])
      writer.run("update providers set timeouts = 'damaged', version = ?", [version])
    })
    await expect(view.refresh()).rejects.toThrow()
    expect([view.policies, view.limits, view.provider('p1'), view.version]).toEqual(before)
    expect(view.policies).toBe(noPolicies)
    writer.run('update providers set timeouts = null')
    await view.refresh()
    expect(view.policies).not.toBe(noPolicies)
    expect(view.limits.accessPolicies.size).toBe(1)
  })

  test('applies new keys at the next refresh when the state could not be read', async () => {
    change((version) => addProvider('p1', 1, version))
    await view.load('g', {})
    writer.run("update providers set timeouts = 'damaged'")
    await expect(view.load('g', keys)).rejects.toThrow()
    writer.run('update providers set timeouts = null')
    await view.refresh()
    expect(view.providers()).toMatchObject([{ apiKey: 'key-p1' }])
  })

  test('ends a token no later than the policy it names, whichever read brought the newer state', async () => {
    await view.load('g', keys)
    change((version) => {
      writer.run("insert into access_policies (id, requests_per_minute, version) values ('p', 3, ?)", [version])
      addToken('one', version)
      addToken('clone', version)
      writer.run(`insert into accounts (id, max_requests, version) values ('source', 9, ?)`, [version])
      writer.run(`update tokens set account_ids = '["source"]' where hash = 'clone'`)
    })
    expect([view.token('one')?.revokedAt, view.token('clone')?.accounts[0]?.maxRequests]).toEqual([null, 9])
    change((version) => {
      writer.run("update tokens set revoked_at = 5, version = ? where hash = 'one'", [version])
      writer.run('update accounts set max_requests = 1, version = ?', [version])
    })
    change((version) => writer.run('update access_policies set deleted = 1, version = ?', [version]))
    change((version) => addToken('two', version))
    view.token('two')
    expect(view.limits.accessPolicies.size).toBe(0)
    expect([view.token('one')?.revokedAt, view.token('clone')?.accounts[0]?.maxRequests]).toEqual([5, 1])
  })

  test('sees a token as soon as it is committed and each change after a refresh', async () => {
    await view.load('g', keys)
    change((version) => addToken('one', version))
    expect(view.token('one')).toMatchObject({ hash: 'one', modelFilter: ['a*'], revokedAt: null })
    change((version) => writer.run("update tokens set revoked_at = 5, version = ? where hash = 'one'", [version]))
    expect(view.token('one')?.revokedAt).toBeNull()
    await view.refresh()
    expect(view.token('one')?.revokedAt).toBe(5)
    change((version) => writer.run("update tokens set deleted = 1, version = ? where hash = 'one'", [version]))
    await view.refresh()
    expect(view.token('one')).toBeNull()
  })

  test('applies more changes than it reads one by one', async () => {
    await view.load('g', keys)
    const version = change((at) => {
      for (let count = 0; count < 4500; count++) addToken(`t${count}`, at)
    })
    await view.refresh()
    for (const hash of ['t0', 't4499']) expect(view.token(hash)?.revokedAt).toBeNull()
    change((at) => writer.run('update tokens set revoked_at = 9, version = ?', [at]))
    expect((await view.refresh()).version).toBe(version + 1)
    for (const hash of ['t0', 't4499']) expect(view.token(hash)?.revokedAt).toBe(9)
  })

  test('has only providers that its gateway may use and has keys for, in order of creation', async () => {
    change((version) => {
      addProvider('p2', 1, version)
      addProvider('p1', 2, version)
      addProvider('p3', 3, version)
      writer.run("insert into models (id, provider_id, created_at, version) values ('m1', 'p1', 1, ?)", [version])
      writer.run("insert into models (id, provider_id, created_at, version) values ('m2', 'p2', 1, ?)", [version])
    })
    await view.load('g', keys)
    expect(view.provider('p1')).toMatchObject({ apiKey: 'key-p1', headers: { a: 'b' } })
    expect(view.providers().map(({ id, apiKey }) => [id, apiKey])).toEqual([
      ['p2', null],
      ['p1', 'key-p1'],
      ['p3', null],
    ])
    expect(view.closedProviders).toEqual(['p2', 'p3'])
    // A listed model never counts as unlisted, whoever may use it.
    expect(view.models().map(({ id, providerId }) => [id, view.provider(providerId)?.id])).toEqual([
      ['m1', 'p1'],
      ['m2', undefined],
    ])
    await view.load('g', { ...keys, p2: keys.p1, p3: keys.p1 })
    expect(view.providers().map(({ id }) => id)).toEqual(['p2', 'p1', 'p3'])
    change((version) => writer.run(`update gateways set providers = '["p3"]', version = ?`, [version]))
    await view.refresh()
    expect(view.providers().map(({ id }) => id)).toEqual(['p3'])
    expect(view.provider('p1')).toBeNull()
  })

  test("refuses a revoked token until the state is at the revocation's version, in the same history", async () => {
    await view.load('g', keys)
    view.revoke({ history: 'history-one', version: 1 }, ['one'])
    view.revoke({ history: 'another', version: 1 }, ['two'])
    await view.refresh()
    expect([view.isRevoked('one'), view.isRevoked('two')]).toEqual([true, true])
    change(() => undefined)
    await view.refresh()
    expect([view.isRevoked('one'), view.isRevoked('two')]).toEqual([false, true])
  })

  test('opens a replaced file again', async () => {
    change((version) => addToken('old', version))
    await view.load('g', keys)
    expect(view.token('old')).not.toBeNull()
    const other = makeState(join(directory, 'other.db'), 'history-two')
    other.close()
    renameSync(join(directory, 'other.db'), file)
    rmSync(`${file}-wal`, { force: true })
    rmSync(`${file}-shm`, { force: true })
    expect(await view.refresh()).toMatchObject({ history: 'history-two', version: 0 })
    expect(view.token('old')).toBeNull()
  })

  test('reports that it cannot read, and never that there is no such token', async () => {
    const broken = join(directory, 'broken.db')
    const unreadable = new FileStateView(broken)
    expect(() => unreadable.token('one')).toThrow(expect.objectContaining({ code: 'dependency_unavailable' }))
    writeFileSync(broken, 'no database at all, but long enough to be looked at as one'.repeat(100))
    expect(() => unreadable.token('one')).toThrow(expect.objectContaining({ code: 'dependency_unavailable' }))
    await expect(unreadable.refresh()).rejects.toMatchObject({ code: 'dependency_unavailable' })
    unreadable.close()
  })

  test('stops at a state that only a later version can read', async () => {
    const later = makeState(join(directory, 'later.db'), 'h', '99.0.0')
    const tooOld = new FileStateView(join(directory, 'later.db'))
    await expect(tooOld.load('g', keys)).rejects.toThrow('needs version 99.0.0')
    tooOld.close()
    later.close()
  })

  test('reads everything again below the version up to which deletions are forgotten', async () => {
    change((version) => addToken('one', version))
    await view.load('g', keys)
    expect(view.token('one')).not.toBeNull()
    change(() => writer.run("delete from tokens where hash = 'one'"))
    await view.refresh()
    expect(view.token('one')).not.toBeNull()
    change((version) => writer.run('update state_head set deletions_kept_from = ?', [version]))
    await view.refresh()
    expect(view.token('one')).toBeNull()
  })

  test('reports while the state is one that this version must not decide by', async () => {
    await view.load('g', keys)
    expect(view.tooNew).toBeNull()
    change(() => writer.run("update state_head set reads_from = '99.0.0'"))
    await expect(view.refresh()).rejects.toThrow('needs version 99.0.0')
    expect(view.tooNew?.message).toContain('99.0.0')
    change(() => writer.run("update state_head set reads_from = '0.2.0'"))
    await view.refresh()
    expect(view.tooNew).toBeNull()
  })

  test('keeps revocations while versions cannot be compared', async () => {
    await view.load('g', keys)
    change((version) => addToken('one', version))
    await view.refresh()
    view.holdRevocations(true)
    view.revoke({ history: 'history-one', version: 1 }, ['one'])
    await view.refresh()
    expect(view.isRevoked('one')).toBe(true)
    view.holdRevocations(false)
    await view.refresh()
    expect(view.isRevoked('one')).toBe(false)
  })

  test('reports a file that is no valid database', async () => {
    const broken = join(directory, 'broken.db')
    writeFileSync(broken, Buffer.alloc(20_000, 'garbage'))
    const reasons: string[] = []
    const unsound = new FileStateView(broken, (reason) => reasons.push(reason))
    await expect(unsound.load('g', keys)).rejects.toMatchObject({ code: 'dependency_unavailable' })
    expect(reasons).toHaveLength(1)
    unsound.close()
  })
})
