import { Database } from 'bun:sqlite'
import { beforeEach, expect, test } from 'bun:test'
import type { ActivePolicy } from '../../policies/chain.ts'
import { stateMigrations } from '../../store/schema/migrate.ts'
import { PolicyView } from './policy-view.ts'

let database: Database
let view: PolicyView
beforeEach(() => {
  database = new Database(':memory:')
  for (const { sql } of stateMigrations) database.run(sql)
  database.run(`insert into policies (id, kind, stages, config, targets, position, mode, when_broken, enabled, version)
    values ('terms', 'term-filter', '["pre_request"]', '{"terms":["a"],"action":"block"}', '{}', 2, 'enforce', 'deny', 1, 1),
      ('injection', 'prompt-injection', '["pre_request"]', '{"action":"block"}', '{}', 1, 'enforce', 'deny', 1, 1)`)
  view = new PolicyView()
})

function active(anew = false): Record<string, ActivePolicy> {
  view.read(database, anew)
  const chain = view.set.chainFor({
    organizationId: 'o',
    gatewayId: 'g',
    tokenId: 't',
    teamId: null,
    policyIds: [],
    model: 'm',
    family: 'chat',
  })
  return Object.fromEntries(chain.at('pre_request').map((policy) => [policy.id, policy]))
}

test('a policy that did not change stays compiled when another one changes', () => {
  const before = active()
  expect(Object.keys(before)).toEqual(['injection', 'terms'])
  database.run(`update policies set config = '{"terms":["b"],"action":"block"}', version = 2 where id = 'terms'`)
  const after = active()
  expect(after.injection).toBe(before.injection)
  expect(after.terms).toMatchObject({ version: 2 })
  const { compiled } = after.terms ?? {}
  expect(compiled !== undefined && 'matcher' in compiled && compiled.matcher.matches('a b')).toMatchObject([
    { start: 2, end: 3 },
  ])
})

test('applies a deleted, disabled or moved policy at the next read, and reads nothing without a change', () => {
  const before = active()
  const { set } = view
  expect(active()).toEqual(before)
  expect(view.set).toBe(set)
  database.run("update policies set position = 0, version = 2 where id = 'terms'")
  expect(Object.keys(active())).toEqual(['terms', 'injection'])
  database.run("update policies set enabled = 0, version = 3 where id = 'injection'")
  expect(Object.keys(active())).toEqual(['terms'])
  database.run("update policies set deleted = 1, version = 4 where id = 'terms'")
  expect(Object.keys(active())).toEqual([])
})

test('compiles policies of another history again, whatever their version', () => {
  const before = active()
  database.run("delete from policies where id = 'terms'")
  const after = active(true)
  expect(Object.keys(after)).toEqual(['injection'])
  expect(after.injection).not.toBe(before.injection)
})
