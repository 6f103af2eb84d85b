import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type TemporaryControlPlane, temporaryControlPlane } from '../../members/testing/temporary-control-plane.ts'
import { recordSearchRoutes } from './record-search-routes.ts'

const id = '0198c8a2-5b1e-7c3a-9f00-123456789abc'
let plane: TemporaryControlPlane
let asked: string[] = []
let sent: (string | null)[] = []
beforeAll(async () => {
  plane = await temporaryControlPlane(undefined, () => [
    recordSearchRoutes({
      fetch: async ({ url, headers }) => {
        const { pathname } = new URL(url)
        asked.push(pathname)
        sent.push(headers.get('authorization'))
        const isBudget = pathname === `/v1/budgets/${id}`
        return Response.json(isBudget ? { id, name: 'growth' } : {}, { status: isBudget ? 200 : 404 })
      },
    }),
  ])
})
afterAll(() => plane.remove())

test('finds the record of an id among all kinds by one call, asking each route as the caller', async () => {
  asked = []
  sent = []
  const { status, json } = await plane.call('GET', `/v1/records/${id}`, { token: plane.adminToken })
  expect([status, json]).toEqual([200, { records: [{ kind: 'budget', id, name: 'growth' }] }])
  expect(asked).toContain(`/v1/tokens/${id}`)
  expect(new Set(sent)).toEqual(new Set([`Bearer ${plane.adminToken}`]))
})

test('answers an id that is none with no record, and what is no id with 404', async () => {
  const other = id.replace('0198', '0199')
  const none = await plane.call('GET', `/v1/records/${other}`, { token: plane.adminToken })
  expect([none.status, none.json]).toEqual([200, { records: [] }])
  const odd = await plane.call('GET', '/v1/records/growth', { token: plane.adminToken })
  expect(odd.status).toBe(404)
})
