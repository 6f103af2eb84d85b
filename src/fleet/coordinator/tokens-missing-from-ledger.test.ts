/** A ledger restored alone, from a copy that lacks tokens of the state or has them in an earlier form. */
import { afterEach, beforeEach, expect, test } from 'bun:test'
import fc from 'fast-check'
import { recordedEvents } from '../../events/testing/recorded.ts'
import { silentLog } from '../../lib/log/log.ts'
import { type TemporaryInstallation, temporaryInstallation } from '../../members/testing/installation.ts'
import type { Row } from '../../store/statement.ts'
import { temporaryApi } from '../../tokens/testing/api.ts'
import { TokensMissingFromLedger } from './tokens-missing-from-ledger.ts'

let made: TemporaryInstallation
let call: ReturnType<typeof temporaryApi>

beforeEach(async () => {
  made = await temporaryInstallation()
  call = temporaryApi(made)
})
afterEach(() => made.store.remove())

const forgotten = () =>
  new TokensMissingFromLedger({ ...made.deps, log: silentLog, recorder: () => made.deps.recorder })

const create = async (body: object = {}): Promise<{ id: string; token_value: string }> =>
  (await call('POST', '/v1/tokens', { body: { name: 'made', purpose: 'general', ...body } })).json

const copiedTables = ['tokens', 'source_accounts', 'pending_changes', 'known_state_head', 'usage_accounts']

/** All rows of a token in the ledger as they are now, to be restored later. */
async function copyLedger(): Promise<() => Promise<void>> {
  const { ledger } = made.store
  const rows = new Map<string, Row[]>()
  for (const table of copiedTables) rows.set(table, await ledger.read(`select * from ${table}`))
  return async () => {
    await ledger.write(
      [...rows].flatMap(([table, copied]) => [
        { sql: `delete from ${table}`, args: [] },
        ...copied.map((row) => ({
          sql: `insert into ${table} (${Object.keys(row)}) values (${Object.keys(row).map(() => '?')})`,
          args: Object.values(row).map((value) =>
            typeof value === 'number' || value === null ? value : String(value),
          ),
        })),
      ]),
    )
  }
}

const told = async () =>
  (await recordedEvents(made.store.ledger))
    .filter(({ reason_code }) => reason_code === 'ledger.restored')
    .map(({ event_type, event_attribution: { token_id } }) => ({ event_type, token_id }))

test("takes a token made after the ledger's copy over again, with its permissions, so that it can be revoked", async () => {
  const before = forgotten()
  expect(await before.takeOverMissing()).toBe(0)
  const putBack = await copyLedger()
  const { id } = await create({ max_budget: 5, max_requests: 7, bindings: { team_id: made.teamId } })
  const { json: whole } = await call('GET', `/v1/tokens/${id}`)
  await putBack()
  expect((await call('GET', `/v1/tokens/${id}`)).status).toBe(404)
  expect(await before.takeOverMissing()).toBe(1)
  const { json: restored } = await call('GET', `/v1/tokens/${id}`)
  expect(restored).toEqual({
    ...whole,
    ...{ name: `restored ${id}`, token_prefix: 'gth_????????', created_by: null, created_at: expect.any(String) },
  })
  expect((await call('DELETE', `/v1/tokens/${id}`)).status).toBe(200)
  expect(await told()).toEqual([{ event_type: 'token.created', token_id: id }])
  expect(await before.takeOverMissing()).toBe(0)
})

test('a control plane that starts on a restored ledger finds missing tokens, though the ledger has others that the state lost', async () => {
  const lost = await create()
  await made.store.state.write([
    { sql: 'delete from tokens where id = ?', args: [lost.id] },
    { sql: "update state_head set nonce = 'restored'", args: [] },
  ])
  const running = forgotten()
  expect(await running.takeOverMissing()).toBe(0)
  const putBack = await copyLedger()
  const { id } = await create()
  await putBack()
  expect(await running.takeOverMissing()).toBe(1)
  await putBack()
  expect(await forgotten().takeOverMissing()).toBe(1)
  expect((await call('GET', `/v1/tokens/${id}`)).status).toBe(200)
})

test('takes over again that a token was revoked or narrowed, and lets it be changed', async () => {
  const [revoked, narrowed] = [await create(), await create({ max_requests: 9 })]
  const running = forgotten()
  await running.takeOverMissing()
  const putBack = await copyLedger()
  await call('DELETE', `/v1/tokens/${revoked.id}`)
  const narrow = (to: number) => call('PATCH', `/v1/tokens/${narrowed.id}`, { body: { max_requests: to } })
  expect((await narrow(5)).status).toBe(200)
  await putBack()
  expect((await narrow(4)).status).toBe(409)
  expect(await running.takeOverMissing()).toBe(2)
  expect((await call('GET', `/v1/tokens/${revoked.id}`)).json.status).toBe('revoked')
  expect((await call('GET', `/v1/tokens/${narrowed.id}`)).json).toMatchObject({ name: 'made', max_requests: 5 })
  expect((await narrow(4)).status).toBe(200)
  expect((await told()).map(({ event_type }) => event_type).toSorted()).toEqual(['token.revoked', 'token.updated'])
})

test('leaves pending changes alone, and two control planes take each token over once', async () => {
  const running = forgotten()
  await running.takeOverMissing()
  const putBack = await copyLedger()
  const { id } = await create()
  await putBack()
  const pending = JSON.stringify({ ledger: [{ sql: '', args: [id] }], revoked: [] })
  await made.store.ledger.write([
    {
      sql: "insert into pending_changes (event_id, statements, event, created_at) values ('e', ?, '{}', 1)",
      args: [pending],
    },
  ])
  running.suspect()
  expect(await running.takeOverMissing()).toBe(0)
  await made.store.ledger.write([{ sql: 'delete from pending_changes', args: [] }])
  const others = [forgotten(), forgotten(), running]
  const taken = await Promise.all(others.map((each) => each.takeOverMissing()))
  expect(taken.reduce((sum, each) => sum + each)).toBe(1)
  expect(await told()).toHaveLength(1)
})

test('compares again when the ledger is restored once more during the work', async () => {
  const token = await create()
  const { ledger } = made.store
  let putBack: (() => Promise<void>) | null = null
  const compared: TokensMissingFromLedger = new TokensMissingFromLedger({
    ...{ ...made.deps, log: silentLog, recorder: () => made.deps.recorder },
    ledger: {
      ...ledger,
      async read<Shape>(sql: string, args?: (string | number | null)[]) {
        const rows = await ledger.read<Shape>(sql, args)
        if (putBack === null || !sql.includes('json_each')) return rows
        await putBack()
        putBack = null
        compared.suspect()
        return rows
      },
    },
  })
  await compared.takeOverMissing()
  const former = await copyLedger()
  expect((await call('DELETE', `/v1/tokens/${token.id}`)).status).toBe(200)
  // Then neither the number of tokens nor the newest version that the ledger saw shows it.
  putBack = async () => {
    await former()
    await ledger.write([{ sql: 'update known_state_head set version = 999', args: [] }])
  }
  compared.suspect()
  expect([await compared.takeOverMissing(), await compared.takeOverMissing()]).toEqual([0, 1])
})

type Step = { what: 'make' | 'revoke' | 'narrow' | 'rotate'; which: number } | { what: 'copy' | 'put back' | 'start' }
const anyStep: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ what: fc.constantFrom('make', 'revoke', 'narrow', 'rotate'), which: fc.nat(20) }),
  fc.record({ what: fc.constantFrom('copy', 'put back', 'start') }),
)

test('after any changes and any restore the ledger matches the state, and nothing is taken over without need', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(anyStep, { minLength: 4, maxLength: 12 }), async (steps) => {
      const { state, ledger } = made.store
      let control = forgotten()
      await control.takeOverMissing()
      let putBack = await copyLedger()
      const ids: string[] = [(await create({ max_requests: 900 })).id]
      const change = async (what: string, id: string) => {
        if (what === 'make') ids.push((await create({ max_requests: 900 })).id)
        if (what === 'revoke') await call('DELETE', `/v1/tokens/${id}`)
        if (what === 'rotate') await call('POST', `/v1/tokens/${id}/rotate`, { body: {} })
        if (what === 'narrow') await call('PATCH', `/v1/tokens/${id}`, { body: { max_requests: 800 - ids.length } })
      }
      for (const step of steps) {
        if ('which' in step) await change(step.what, ids[step.which % ids.length] ?? '')
        else if (step.what === 'copy') putBack = await copyLedger()
        else if (step.what === 'put back') await putBack()
        else control = forgotten()
        const before = await digests(ledger)
        const taken = await control.takeOverMissing()
        expect(await digests(ledger)).toEqual(await digests(state))
        if (step.what !== 'put back') expect([taken, before]).toEqual([0, await digests(state)])
      }
    }),
    { numRuns: 8 },
  )
}, 30_000)

const digests = (database: Pick<TemporaryInstallation['store']['state'], 'read'>) =>
  database.read('select id, version, revoked_at, rotated_at, max_requests, team_id from tokens order by id')
