/** Which record has an id: one of every kind, asked of the executable. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { z } from 'zod'
import type { RecordKindName } from '../../src/api/together/record-search-routes.ts'
import { api, chat, createToken, expectAnswer } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'
import { type Gatehouse, startGatehouse } from '../support/harness.ts'

setDefaultTimeout(120_000)

let gatehouse: Gatehouse
let token: { id: string; token_value: string }
beforeAll(async () => {
  gatehouse = await startGatehouse()
  token = await createToken(gatehouse, { name: 'sought', roles: ['member'] })
}, 240_000)
afterAll(() => gatehouse?.stop())

const made = z.union([z.looseObject({ id: z.uuid() }), z.looseObject({ client_id: z.uuid() })])

async function make(path: string, body: object): Promise<string> {
  const record = expectAnswer(await api(gatehouse, path, { body }), 201, made)
  return z.uuid().parse('id' in record ? record.id : record.client_id)
}

const queue = z.object({ escalations: z.array(z.object({ id: z.uuid() })) })

async function escalated(): Promise<string> {
  const when = 'request.text.contains("wire")'
  const asking = { name: 'asking', kind: 'escalate', stages: ['pre_request'], when }
  await make('/v1/policies', { ...asking, config: { reason_code: 'a.wire' } })
  return await eventually(
    async () => {
      await (await chat(gatehouse, { token: token.token_value, model: 'simulator/echo', text: 'wire' })).text()
      const { escalations } = expectAnswer(await api(gatehouse, '/v1/escalations'), 200, queue)
      return z.uuid().parse(escalations[0]?.id)
    },
    { withinMs: 30_000 },
  )
}

const search = async (id: string, asking = gatehouse.adminToken): Promise<unknown> =>
  (await api(gatehouse, `/v1/records/${id}`, { token: asking })).body

const kinds: Readonly<Record<RecordKindName, () => [id: string | Promise<string>, name: string]>> = {
  token: () => [token.id, 'sought'],
  policy: () => [
    make('/v1/policies', { name: 'sought', kind: 'audit', stages: ['pre_request'], config: {} }),
    'sought',
  ],
  escalation: () => [escalated(), 'a.wire'],
  team: () => [make('/v1/teams', { name: 'sought' }), 'sought'],
  user: () => [make('/v1/users', { email: 'sought@example.com', name: 'sought', role: 'member' }), 'sought'],
  provider: () => [make('/v1/catalog/providers', { name: 'sought', kind: 'simulator' }), 'sought'],
  mcp_server: () => [make('/v1/catalog/mcp-servers', { name: 'sought', url: 'https://mcp.example.com/mcp' }), 'sought'],
  gateway: () => [make('/v1/gateways', { name: 'sought' }), 'sought'],
  budget: () => [
    make('/v1/budgets', { name: 'sought', max_budget: 5, window: 'day', scope: { kind: 'organization' } }),
    'sought',
  ],
  consumer_group: () => [
    make('/v1/consumer-groups', { name: 'sought', requests_per_minute: 5, members: { tokens: [token.id] } }),
    'sought',
  ],
  access_policy: () => [make('/v1/access-policies', { name: 'sought', requests_per_minute: 5 }), 'sought'],
  dimension: () => [
    make('/v1/attribution-dimensions', { name: 'sought', source: { kind: 'header', key: 'x-sought' } }),
    'sought',
  ],
  application: () => [
    make('/v1/oauth/clients', {
      client_name: 'sought',
      redirect_uris: ['https://sought.example.com/back'],
      scope: 'tokens:read',
    }),
    'sought',
  ],
}

test.each(Object.entries(kinds))(
  'finds a record of the kind %s by its id, and a member only its own',
  async (kind, record) => {
    const [made, name] = record()
    const id = await made
    const records = [{ kind, id, name }]
    expect(await search(id)).toEqual({ records })
    expect(await search(id, token.token_value)).toEqual({ records: kind === 'token' ? records : [] })
  },
)
