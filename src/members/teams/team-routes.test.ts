import { afterAll, beforeAll, expect, test } from 'bun:test'
import { recordedEvents } from '../../events/testing/recorded.ts'
import { type TemporaryControlPlane, temporaryControlPlane } from '../testing/temporary-control-plane.ts'

let plane: TemporaryControlPlane
beforeAll(async () => {
  plane = await temporaryControlPlane()
})
afterAll(() => plane.remove())

const call = (method: string, path: string, body?: unknown) =>
  plane.call(method, path, { token: plane.adminToken, ...(body === undefined ? {} : { body }) })
const makeTeam = async (name = `team ${crypto.randomUUID()}`): Promise<string> =>
  (await call('POST', '/v1/teams', { name })).json.id

test('creates, renames and deletes a team, each with its event', async () => {
  const made = await call('POST', '/v1/teams', { name: ' Search ' })
  expect([made.status, made.json.name, made.json.member_count]).toEqual([201, 'Search', 0])
  const { id } = made.json
  expect((await call('PATCH', `/v1/teams/${id}`, { name: 'Ranking' })).json).toMatchObject({
    name: 'Ranking',
    version: 2,
  })
  expect((await call('DELETE', `/v1/teams/${id}`)).json.name).toBe('Ranking')
  expect((await call('GET', `/v1/teams/${id}`)).status).toBe(404)
  const recorded = await recordedEvents(plane.store.ledger)
  const events = recorded.filter(({ event_attribution: { team_id } }) => team_id === id)
  expect(events.map(({ event_type }) => event_type)).toEqual([
    'member.team_created',
    'member.team_updated',
    'member.team_deleted',
  ])
})

test('refuses a name that another team has', async () => {
  await makeTeam('Only once')
  const again = await call('POST', '/v1/teams', { name: 'Only once' })
  expect([again.status, again.json.error.param]).toEqual([409, 'name'])
})

test('adds a person to a team once, lists and removes them', async () => {
  const [team, person] = [await makeTeam(), await plane.addPerson('joiner@example.com')]
  const members = `/v1/teams/${team}/members`
  expect((await call('POST', members, { user_id: person })).json).toMatchObject({ team_id: team, user_id: person })
  expect((await call('POST', members, { user_id: person })).status).toBe(409)
  expect((await call('POST', members, { user_id: crypto.randomUUID() })).json.error).toMatchObject({
    code: 'invalid_parameter',
    param: 'user_id',
  })
  expect((await call('GET', members)).json).toMatchObject({
    members: [{ email: 'joiner@example.com' }],
    next_cursor: null,
  })
  expect((await call('GET', `/v1/users/${person}`)).json.team_ids).toEqual([team])
  expect((await call('DELETE', `${members}/${person}`)).status).toBe(200)
  expect((await call('DELETE', `${members}/${person}`)).status).toBe(404)
  expect((await call('GET', members)).json.members).toEqual([])
})

test('refuses to delete a team with members or active tokens', async () => {
  const [withMember, withToken] = [await makeTeam(), await makeTeam()]
  const person = await plane.addPerson('stayer@example.com')
  await call('POST', `/v1/teams/${withMember}/members`, { user_id: person })
  const token = await call('POST', '/v1/tokens', {
    name: 'x',
    purpose: 'integration',
    bindings: { team_id: withToken },
  })
  expect(token.status).toBe(201)
  expect((await call('DELETE', `/v1/teams/${withMember}`)).json.error.code).toBe('conflict')
  expect((await call('DELETE', `/v1/teams/${withToken}`)).json.error.code).toBe('conflict')
  await call('DELETE', `/v1/tokens/${token.json.id}`)
  expect((await call('DELETE', `/v1/teams/${withToken}`)).status).toBe(200)
})

test('the team for unowned records keeps its name and cannot be deleted', async () => {
  expect((await call('DELETE', `/v1/teams/${plane.teamId}`)).status).toBe(409)
  expect((await call('PATCH', `/v1/teams/${plane.teamId}`, { name: 'other' })).status).toBe(409)
})

test('a person who joins during the deletion of a team is in it or finds none', async () => {
  const person = await plane.addPerson('racer@example.com')
  for (let round = 0; round < 10; round += 1) {
    const team = await makeTeam()
    const [joined, deleted] = await Promise.all([
      call('POST', `/v1/teams/${team}/members`, { user_id: person }),
      call('DELETE', `/v1/teams/${team}`),
    ])
    const rows = await plane.store.ledger.read('select 1 from memberships where team_id = ?', [team])
    const teams = await plane.store.ledger.read('select 1 from teams where id = ?', [team])
    expect(rows.length).toBe(joined.status === 201 ? 1 : 0)
    expect(teams.length).toBe(deleted.status === 200 ? 0 : 1)
    expect(rows.length).toBe(teams.length)
  }
})

test('leaving a team revokes the tokens that are bound to both, also when repeated', async () => {
  const [team, person] = [await makeTeam(), await plane.addPerson('leaver@example.com')]
  const members = `/v1/teams/${team}/members`
  await call('POST', members, { user_id: person })
  const bound = async (bindings: object): Promise<string> =>
    (await call('POST', '/v1/tokens', { name: 'one', purpose: 'general', bindings })).json.id
  const statusOf = async (id: string) => (await call('GET', `/v1/tokens/${id}`)).json.status
  const [both, again] = [
    await bound({ team_id: team, user_id: person }),
    await bound({ team_id: team, user_id: person }),
  ]
  const [ofTeam, ofPerson] = [await bound({ team_id: team }), await bound({ user_id: person })]
  expect((await call('DELETE', `${members}/${person}`)).status).toBe(200)
  expect(await Promise.all([both, again, ofTeam, ofPerson].map(statusOf))).toEqual([
    'revoked',
    'revoked',
    'active',
    'active',
  ])
  await plane.store.state.write([{ sql: 'update tokens set revoked_at = null where id = ?', args: [again] }])
  await plane.store.ledger.write([{ sql: 'update tokens set revoked_at = null where id = ?', args: [again] }])
  expect((await call('DELETE', `${members}/${person}`)).status).toBe(404)
  expect(await statusOf(again)).toBe('revoked')
})

test('finds teams by a part of their name in letters of any size, or of their id, page by page', async () => {
  const ids = [await makeTeam('Sought First'), await makeTeam('sought second'), await makeTeam('another')]
  const named = async (query: string) => (await call('GET', `/v1/teams?${query}`)).json
  const found = await named('name=SOUGHT&limit=1')
  expect(found.teams.map(({ id }: { id: string }) => id)).toEqual([ids[0]])
  const next = await named(`name=SOUGHT&limit=1&cursor=${found.next_cursor}`)
  expect([next.teams.map(({ id }: { id: string }) => id), next.next_cursor]).toEqual([[ids[1]], null])
  const [last] = ids.slice(-1)
  expect((await named(`name=${last?.slice(-12)}`)).teams).toMatchObject([{ id: last }])
  expect((await named(`name=${last?.slice(-7)}`)).teams).toEqual([])
  expect((await call('GET', '/v1/teams?name=')).json.error.param).toBe('name')
})
