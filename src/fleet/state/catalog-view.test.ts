import { Database } from 'bun:sqlite'
import { beforeEach, expect, test } from 'bun:test'
import { stateMigrations } from '../../store/schema/migrate.ts'
import { CatalogView } from './catalog-view.ts'

let database: Database
let view: CatalogView
beforeEach(() => {
  database = new Database(':memory:')
  for (const { sql } of stateMigrations) database.run(sql)
  database.run("insert into gateways (id, name, version) values ('g', 'gateway', 1)")
  database.run("insert into providers (id, name, kind, position, version) values ('p', 'p', 'openai', 1, 1)")
  database.run(`insert into models (id, provider_id, created_at, version)
    values ('c', 'p', 1, 1), ('a', 'p', 1, 1), ('b', 'p', 1, 1)`)
  view = new CatalogView()
})

const keys = {}
const read = (anew = false) => view.read(database, 'g', keys, anew)

test('a change of one model leaves the others and the providers as they were compiled', () => {
  const before = read()
  expect(before.modelList.map(({ id }) => id)).toEqual(['a', 'b', 'c'])
  database.run("update models set max_output_tokens = 5, translation = 'strict', version = 2 where id = 'b'")
  database.run("insert into models (id, provider_id, created_at, version) values ('aa', 'p', 1, 2)")
  const after = read()
  expect(after.modelList.map(({ id }) => id)).toEqual(['a', 'aa', 'b', 'c'])
  expect(after.models.get('a')).toBe(before.models.get('a'))
  expect(after.models.get('b')?.maxOutputTokens).toBe(5)
  expect(after.models.get('b')?.isTranslatedStrictly).toBe(true)
  expect(after.models.get('a')?.isTranslatedStrictly).toBe(false)
  expect(after.providerList).toBe(before.providerList)
  database.run("update models set deleted = 1, version = 3 where id = 'a'")
  expect(read().models.has('a')).toBe(false)
})

test('keeps the same catalog object until something changes, or the gateway, a key or the history does', () => {
  const before = read()
  expect(read()).toBe(before)
  database.run(`update gateways set providers = '[]', version = 2`)
  expect(read().providerList).toEqual([])
  expect(read().modelList).toBe(before.modelList)
  expect(view.read(database, 'g', {}, false)).not.toBe(before)
  database.run('delete from models')
  expect(read(true).modelList).toEqual([])
})
