import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { Failure } from '../../failure.ts'
import { silentLog } from '../../lib/log/log.ts'
import { type TemporaryControlPlane, temporaryControlPlane } from '../../members/testing/temporary-control-plane.ts'
import { failureResponse } from '../answer.ts'
import { recordSearchRoutes } from './record-search-routes.ts'

let plane: TemporaryControlPlane
let asked: string[] = []
/** What the route of people answers in place of its own answer. */
let usersAnswer: Response | null = null

beforeAll(async () => {
  plane = await temporaryControlPlane(undefined, () => [
    recordSearchRoutes({
      fetch: async (request) => {
        const { pathname } = new URL(request.url)
        asked.push(pathname)
        return pathname.startsWith('/v1/users/') && usersAnswer !== null ? usersAnswer : plane.fetch(request)
      },
    }),
  ])
})
afterAll(() => plane.remove())
beforeEach(() => {
  asked = []
  usersAnswer = null
})

const search = async (id: string, token = plane.adminToken) => {
  const { status, json } = await plane.call('GET', `/v1/records/${id}`, { token })
  return { status, json }
}

const refusal = (failure: Failure) =>
  failureResponse(failure, { requestId: 'inner', log: silentLog, origin: 'http://127.0.0.1' })

const create = async (path: string, body: object) =>
  (await plane.call('POST', path, { token: plane.adminToken, body })).json

test('finds a record by the route of its kind, with the permissions of the caller', async () => {
  const team = await create('/v1/teams', { name: 'growth' })
  const member = await create('/v1/tokens', { name: 'own', purpose: 'general', roles: ['member'] })
  expect(await search(team.id)).toEqual({
    status: 200,
    json: { records: [{ kind: 'team', id: team.id, name: 'growth' }] },
  })
  asked = []
  expect(await search(team.id, member.token_value)).toEqual({ status: 200, json: { records: [] } })
  expect(asked).toEqual([`/v1/tokens/${team.id}`])
  const own = [{ kind: 'token', id: member.id, name: 'own' }]
  expect((await search(member.id, member.token_value)).json).toEqual({ records: own })
})

test('answers an id that is none with no record, and what is no id with 404', async () => {
  expect(await search(crypto.randomUUID())).toEqual({ status: 200, json: { records: [] } })
  expect((await search('growth')).status).toBe(404)
})

test.each(['permission_denied', 'not_found'] as const)('takes %s of a route for no record', async (code) => {
  usersAnswer = refusal(new Failure(code))
  expect(await search(plane.teamId)).toMatchObject({ status: 200, json: { records: [{ kind: 'team' }] } })
})

test.each(['invalid_api_token', 'internal', 'dependency_unavailable'] as const)(
  'answers %s of a route with the same refusal, and not as if there were no record',
  async (code) => {
    const failure = new Failure(code, { retryAfter: 7 })
    usersAnswer = refusal(failure)
    const answer = await plane.call('GET', `/v1/records/${crypto.randomUUID()}`, { token: plane.adminToken })
    expect([answer.status, answer.json.error.code]).toEqual([failure.status, code])
    expect(answer.headers.get('retry-after')).toBe('7')
  },
)
