import { afterAll, beforeAll, expect, test } from 'bun:test'
import { and, count, desc, eq, sql } from 'drizzle-orm'
import { guard, hasRow, insert, isOneOf, prepared, query, remove, statement, update } from './query.ts'
import { guards } from './schema/ledger/changes.ts'
import { memberships, teams, users } from './schema/ledger/people.ts'
import { type TemporaryStore, temporaryStore } from './testing/store.ts'

let store: TemporaryStore
beforeAll(async () => {
  store = await temporaryStore()
  const person = (id: string, name: string) => ({
    id,
    name,
    email: `${id}@example.com`,
    role: 'member' as const,
    status: 'active' as const,
    createdAt: 1,
  })
  await store.ledger.write([
    statement(insert(teams).values({ id: 't', name: 'Engines', createdAt: 1 })),
    statement(insert(users).values([person('ada', 'Ada'), person('bob', 'Bob')])),
    statement(insert(memberships).values({ teamId: 't', userId: 'ada', createdAt: 2 })),
  ])
})
afterAll(() => store.remove())

test('a failed query rejects with the error of the database, which quotes no value', async () => {
  const failure = new Error('The database does not answer')
  const database = { read: () => Promise.reject(failure), readValues: () => Promise.reject(failure) }
  const byId = prepared((on) =>
    on
      .select()
      .from(users)
      .where(eq(users.id, sql.placeholder('id')))
      .prepare(),
  )
  expect(
    await query(database)
      .select()
      .from(users)
      .where(eq(users.id, 'ada'))
      .catch((error: unknown) => error),
  ).toBe(failure)
  expect(
    await byId(database)
      .get({ id: 'ada' })
      .catch((error: unknown) => error),
  ).toBe(failure)
})

test('rows have the names and the types of the table', async () => {
  const [ada] = await query(store.ledger).select().from(users).where(eq(users.id, 'ada'))
  expect(ada).toEqual({
    id: 'ada',
    email: 'ada@example.com',
    name: 'Ada',
    role: 'member',
    status: 'active',
    passwordHash: null,
    ...{ totpSecret: null, totpSince: null, totpStep: 0 },
    createdAt: 1,
    version: 1,
  })
})

test('a join keeps columns of the same name apart', async () => {
  const rows = await query(store.ledger)
    .select({ user: users.id, team: teams.id, userName: users.name, teamName: teams.name })
    .from(users)
    .leftJoin(memberships, eq(memberships.userId, users.id))
    .leftJoin(teams, eq(teams.id, memberships.teamId))
    .orderBy(desc(users.id))
  expect(rows).toEqual([
    { user: 'bob', team: null, userName: 'Bob', teamName: null },
    { user: 'ada', team: 't', userName: 'Ada', teamName: 'Engines' },
  ])
})

test('get returns one row, or undefined if there is none', async () => {
  const found = (id: string) =>
    query(store.ledger).select({ name: users.name }).from(users).where(eq(users.id, id)).get()
  expect(await found('bob')).toEqual({ name: 'Bob' })
  expect(await found('carl')).toBeUndefined()
})

test('isOneOf takes any number of values as one parameter', async () => {
  const of = async (ids: string[]) =>
    await query(store.ledger).select({ all: count() }).from(users).where(isOneOf(users.id, ids)).get()
  expect(await of(['ada', 'bob', 'carl'])).toEqual({ all: 2 })
  expect(await of([])).toEqual({ all: 0 })
  expect(
    query(store.ledger)
      .select()
      .from(users)
      .where(isOneOf(users.id, ['a', 'b']))
      .toSQL().params,
  ).toEqual(['["a","b"]'])
})

test('a guard that does not hold undoes its batch, and one that holds leaves it', async () => {
  const rename = (name: string, version: number) => [
    guard(hasRow(users, and(eq(users.id, 'ada'), eq(users.version, version)))),
    statement(
      update(users)
        .set({ name, version: sql`${users.version} + 1` })
        .where(eq(users.id, 'ada')),
    ),
  ]
  await expect(store.ledger.write(rename('Countess', 7))).rejects.toThrow('CHECK constraint failed')
  await store.ledger.write(rename('Lovelace', 1))
  expect(await query(store.ledger).select({ name: users.name, version: users.version }).from(users)).toContainEqual({
    name: 'Lovelace',
    version: 2,
  })
  expect(await query(store.ledger).select().from(guards)).toEqual([])
})

test('treats a null condition as false', async () => {
  await expect(store.ledger.write([guard(sql`null`)])).rejects.toThrow('CHECK constraint failed')
})

test('a prepared query runs again with other values', async () => {
  const byId = prepared((query) =>
    query
      .select({ email: users.email })
      .from(users)
      .where(eq(users.id, sql.placeholder('id')))
      .prepare(),
  )
  for (const id of ['ada', 'bob']) expect(await byId(store.ledger).get({ id })).toEqual({ email: `${id}@example.com` })
})

test('rolls back a failed batch completely', async () => {
  const team = { id: 'u', name: 'Hulls', createdAt: 1 }
  const written = store.ledger.write([statement(insert(teams).values(team)), statement(insert(teams).values(team))])
  await expect(written).rejects.toThrow('UNIQUE constraint failed')
  expect(await query(store.ledger).select().from(teams).where(eq(teams.id, 'u'))).toEqual([])
})

test('refuses a value that no database can hold before sending it', () => {
  expect(() => statement(remove(teams).where(sql`${teams.id} = ${new Date(0)}`))).toThrow('No object can be a value')
})
