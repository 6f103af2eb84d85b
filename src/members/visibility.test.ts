import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type TemporaryControlPlane, temporaryControlPlane } from './testing/temporary-control-plane.ts'

let plane: TemporaryControlPlane
beforeAll(async () => {
  plane = await temporaryControlPlane()
})
afterAll(() => plane.remove())

const asAdmin = (method: string, path: string, body?: unknown) =>
  plane.call(method, path, { token: plane.adminToken, ...(body === undefined ? {} : { body }) })

async function bound(bindings: object): Promise<string> {
  const body = { name: 'bound', purpose: 'general', roles: ['admin'], bindings }
  return (await asAdmin('POST', '/v1/tokens', body)).json.token_value
}

test('a token that is bound to a team or a person sees only its records and gets 404 for others', async () => {
  const [ours, others] = await Promise.all(
    ['ours', 'others'].map(async (name) => (await asAdmin('POST', '/v1/teams', { name })).json.id),
  )
  const [mine, mate, stranger] = await Promise.all(['mine', 'mate', 'stranger'].map((name) => person(name)))
  for (const user_id of [mine, mate]) await asAdmin('POST', `/v1/teams/${ours}/members`, { user_id })
  await asAdmin('POST', `/v1/teams/${others}/members`, { user_id: stranger })

  for (const bindings of [{ team_id: ours }, { user_id: mine }]) {
    const token = await bound(bindings)
    const call = (path: string) => plane.call('GET', path, { token })
    const ids = async (path: string, member: 'users' | 'teams') =>
      (await call(path)).json[member].map(({ id }: { id: string }) => id)
    expect((await ids('/v1/users', 'users')).toSorted()).toEqual([mine, mate].toSorted())
    expect(await ids('/v1/teams', 'teams')).toEqual([ours])
    for (const path of [`/v1/users/${stranger}`, `/v1/teams/${others}`, `/v1/teams/${others}/members`]) {
      expect([path, (await call(path)).status]).toEqual([path, 404])
    }
    expect((await call(`/v1/users/${mate}`)).status).toBe(200)
    expect((await call(`/v1/teams/${ours}/members`)).json.members).toHaveLength(2)
  }
  expect((await asAdmin('GET', `/v1/users/${stranger}`)).status).toBe(200)
})

const person = async (name: string): Promise<string> =>
  (await asAdmin('POST', '/v1/users', { email: `${name}@example.com`, name, role: 'admin' })).json.id
