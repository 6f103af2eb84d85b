/** For which teams a caller may make tokens, and whose events somebody without a team sees. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { visibilityFor } from '../events/query/visibility-filter.ts'
import { sessionPrincipal } from './sessions/authenticate-session.ts'
import { type TemporaryControlPlane, temporaryControlPlane } from './testing/temporary-control-plane.ts'

let plane: TemporaryControlPlane
let other: string
beforeAll(async () => {
  plane = await temporaryControlPlane()
  const team = await plane.call('POST', '/v1/teams', { token: plane.adminToken, body: { name: 'other' } })
  other = team.json.id
})
afterAll(() => plane.remove())

const token = (bindings: object, roles = ['member']) => ({ name: 'one', purpose: 'general', roles, bindings })

test.each(['owner', 'admin'] as const)(
  'the session of an %s makes a token for a team that the person is not in',
  async (role) => {
    await plane.addPerson(`${role}@example.com`, role)
    const browser = await plane.signInAs(`${role}@example.com`)
    const made = await plane.call('POST', '/v1/tokens', {
      cookie: browser.cookie,
      headers: plane.fromPage(browser),
      body: token({ team_id: other }),
    })
    expect([made.status, made.json.bindings]).toEqual([201, { team_id: other }])
  },
)

test('a token bound to a team or a user makes none for another team, and the refusal says why', async () => {
  const user = await plane.addPerson('bound@example.com', 'admin')
  for (const [bindings, reason] of [
    [{ team_id: plane.teamId }, 'The calling token is bound to a team'],
    [{ user_id: user }, 'The calling token is bound to a user'],
  ] as const) {
    const bound = await plane.call('POST', '/v1/tokens', { token: plane.adminToken, body: token(bindings, ['admin']) })
    const refused = await plane.call('POST', '/v1/tokens', {
      token: bound.json.token_value,
      body: token({ team_id: other }),
    })
    expect(refused.json.error).toMatchObject({
      code: 'permission_denied',
      param: 'bindings.team_id',
      message: expect.stringContaining(reason),
    })
  }
})

test('a person without a team sees the events of the tokens that are bound to the person', async () => {
  const user = await plane.addPerson('alone@example.com', 'member')
  const of = () => visibilityFor(plane.store.ledger, sessionPrincipal({ userId: user, role: 'member' }))
  expect(await of()).toEqual({ teams: [], ownTokens: [] })
  const own = await plane.call('POST', '/v1/tokens', { token: plane.adminToken, body: token({ user_id: user }) })
  expect(await of()).toEqual({ teams: [], ownTokens: [own.json.id] })
  const membership = { token: plane.adminToken, body: { user_id: user } }
  expect((await plane.call('POST', `/v1/teams/${other}/members`, membership)).status).toBe(201)
  expect(await of()).toEqual({ teams: [other], ownTokens: [] })
})
