import { afterAll, beforeAll, expect, test } from 'bun:test'
import { recordedEvents } from '../../events/testing/recorded.ts'
import { anonymous } from '../../identity/principal.ts'
import { silentLog } from '../../lib/log/log.ts'
import { type TemporaryControlPlane, temporaryControlPlane } from '../../members/testing/temporary-control-plane.ts'
import { testMasterKey } from '../../store/testing/master-key.ts'
import { mcpServerRoutes } from '../catalog/server-routes.ts'
import { definitionOf, type offerKinds } from './definition.ts'
import { firstUseMilliseconds } from './offer-report.ts'
import { mcpOfferRoutes } from './offer-routes.ts'
import { offersLimit, takeOffers } from './take-offers.ts'

let plane: TemporaryControlPlane
beforeAll(async () => {
  plane = await temporaryControlPlane(undefined, (deps) => [
    mcpServerRoutes({ ...deps, masterKey: testMasterKey(), plainHttp: 'loopback' }),
    mcpOfferRoutes({ ...deps, log: silentLog }),
  ])
})
afterAll(() => plane.remove())

const servers = '/v1/catalog/mcp-servers'

const call = (method: string, path: string, body?: unknown) =>
  plane.call(method, path, { token: plane.adminToken, ...(body === undefined ? {} : { body }) })

let made = 0
async function make(fields: object = { url: 'https://tools.example.com/mcp' }) {
  const answer = await call('POST', servers, { name: `server-${++made}`, ...fields })
  if (answer.status !== 201) throw new Error(answer.text)
  return answer.json
}
const refused = async (...sent: Parameters<typeof call>) => {
  const { status, json } = await call(...sent)
  return [status, json.error?.code, json.error?.param]
}
const eventsOf = async (id: string) =>
  (await recordedEvents(plane.store.ledger)).filter((event) => JSON.stringify(event).includes(id))

const tool = (name: string, description = 'Does it') => ({ name, description, inputSchema: { type: 'object' } })

async function report(serverId: string, offers: readonly object[], kind: (typeof offerKinds)[number] = 'tool') {
  const definitions = offers.flatMap((offer) => definitionOf(kind, offer)?.text ?? [])
  const gateway = { principal: { ...anonymous, name: 'runtime', gatewayId: 'g' }, requestId: 'r' }
  const deps = { ...plane.dependencies, log: silentLog }
  return await takeOffers(deps, gateway, { server_id: serverId, kind, definitions })
}
const offersOf = async (id: string) => {
  const { offers } = (await call('GET', `${servers}/${id}/offers`)).json
  return offers.map(({ name, status }: { name: string; status: string }) => `${name} ${status}`)
}

test('approves what a server offers when it is first listed and holds later changes and additions', async () => {
  const { id } = await make()
  expect(await report(id, [tool('a'), tool('b')])).toEqual({ approved: 2, held: 0 })
  // The next page of the same listing.
  expect(await report(id, [tool('a'), tool('c')])).toEqual({ approved: 1, held: 0 })
  expect(await report(id, [tool('a', 'Sends it to me')])).toEqual({ approved: 0, held: 1 })
  plane.clock.advance(firstUseMilliseconds)
  expect(await report(id, [tool('d')])).toEqual({ approved: 0, held: 1 })
  expect(await offersOf(id)).toEqual(['a approved', 'b approved', 'c approved', 'a held', 'd held'])
  const events = (await eventsOf(id)).filter(({ event_type }) => event_type.startsWith('mcp.'))
  expect(events.map(({ event_type, verdict, reason_code }) => [event_type, verdict, reason_code])).toEqual([
    ['mcp.offer_approved', 'allow', 'mcp.first_use'],
    ['mcp.offer_approved', 'allow', 'mcp.first_use'],
    ['mcp.offer_changed', 'deny', 'mcp.definition_changed'],
    ['mcp.offer_changed', 'deny', 'mcp.definition_added'],
  ])
  const [old, next] = [tool('a'), tool('a', 'Sends it to me')].map((each) => definitionOf('tool', each)?.digest)
  expect(events[2]?.details?.offers).toEqual([{ name: 'a', digest: next, approved_digest: old }])
  // The same again is nothing new.
  expect(await report(id, [tool('a', 'Sends it to me'), tool('d')])).toEqual({ approved: 0, held: 0 })
})

test('holds an offer that callers could not read, states why and refuses its approval', async () => {
  const { id } = await make()
  const misfit = { name: 'a', inputSchema: { type: 'array' } }
  expect(await report(id, [misfit])).toEqual({ approved: 0, held: 1 })
  const { offers } = (await call('GET', `${servers}/${id}/offers`)).json
  const why = 'inputSchema.type must be one of object'
  expect(offers).toMatchObject([{ status: 'held', misfit: why }])
  const [event] = (await eventsOf(id)).filter(({ event_type }) => event_type === 'mcp.offer_changed')
  expect(event?.details?.offers).toMatchObject([{ name: 'a', misfit: why }])
  const { kind, name, digest } = offers[0]
  const approval = await refused('POST', `${servers}/${id}/offers/approve`, { kind, name, digest })
  expect(approval).toEqual([422, 'invalid_parameter', 'digest'])
})

test('replaces one approved definition by another when a person approves it', async () => {
  const { id } = await make()
  await report(id, [tool('a')])
  await report(id, [tool('a', 'Better words')])
  const digest = definitionOf('tool', tool('a', 'Better words'))?.digest
  const path = `${servers}/${id}/offers/approve`
  const approved = await call('POST', path, { kind: 'tool', name: 'a', digest })
  expect(approved.json).toMatchObject({ status: 'approved', definition: tool('a', 'Better words') })
  expect(await offersOf(id)).toEqual(['a held', 'a approved'])
  expect((await call('POST', path, { kind: 'tool', name: 'b', digest })).status).toBe(404)
  await call('POST', path, { kind: 'tool', name: 'a', digest })
  expect((await eventsOf(id)).at(-1)).toMatchObject({ event_type: 'mcp.offer_approved', details: { kind: 'tool' } })
})

test('shows how a held definition differs from the approved one', async () => {
  const { id } = await make()
  await report(id, [tool('a')])
  await report(id, [{ ...tool('a', 'Sends it to me'), annotations: { readOnlyHint: true } }])
  const { offers } = (await call('GET', `${servers}/${id}/offers`)).json
  expect(offers.map(({ changes }: { changes: unknown }) => changes)).toEqual([
    null,
    [
      { path: 'description', before: '"Does it"', after: '"Sends it to me"' },
      { path: 'annotations', before: null, after: '{"readOnlyHint":true}' },
    ],
  ])
  const { kind, name, digest } = offers[1]
  const approved = await call('POST', `${servers}/${id}/offers/approve`, { kind, name, digest })
  expect(approved.json).toMatchObject({ status: 'approved', changes: null })
})

const waitingOf = async (id: string) => {
  const { mcp_servers } = (await call('GET', '/v1/catalog/waiting-mcp-offers')).json
  return mcp_servers.find((server: { id: string }) => server.id === id)
}

test('counts the changed and added definitions of a server that wait, until a person approves them', async () => {
  const { id, name } = await make()
  await report(id, [tool('a'), tool('b')])
  expect(await waitingOf(id)).toBeUndefined()
  const since = new Date(plane.clock.now()).toISOString()
  await report(id, [tool('a', 'Sends it to me')])
  plane.clock.advance(firstUseMilliseconds)
  await report(id, [tool('d')])
  expect(await waitingOf(id)).toEqual({ id, name, changed: 1, added: 1, names: ['d', 'a'], since })
  for (const offer of [tool('a', 'Sends it to me'), tool('d')]) {
    const digest = definitionOf('tool', offer)?.digest
    await call('POST', `${servers}/${id}/offers/approve`, { kind: 'tool', name: offer.name, digest })
  }
  expect(await waitingOf(id)).toBeUndefined()
})

test('does not count an earlier definition after a person approved the later one', async () => {
  const { id } = await make({ url: 'https://tools.example.com/mcp', approval: 'required' })
  await report(id, [tool('a', 'First')])
  await report(id, [tool('a', 'Second')])
  expect(await waitingOf(id)).toMatchObject({ changed: 0, added: 1, names: ['a'] })
  const digest = definitionOf('tool', tool('a', 'Second'))?.digest
  await call('POST', `${servers}/${id}/offers/approve`, { kind: 'tool', name: 'a', digest })
  expect(await waitingOf(id)).toBeUndefined()
})

test('announces a dismissed definition no longer, and the next one of the same tool again', async () => {
  const { id } = await make()
  await report(id, [tool('a')])
  await report(id, [tool('a', 'Second')])
  const decide = async (what: string, offer: object) =>
    await call('POST', `${servers}/${id}/offers/${what}`, {
      ...{ kind: 'tool', name: 'a', digest: definitionOf('tool', offer)?.digest },
    })
  const dismissedAt = new Date(plane.clock.now()).toISOString()
  const dismissed = await decide('dismiss', tool('a', 'Second'))
  expect(dismissed.json).toMatchObject({ status: 'held', dismissed_at: dismissedAt })
  expect(dismissed.json.dismissed_by).toMatch(/^\w+:/)
  expect(await waitingOf(id)).toBeUndefined()
  expect(await offersOf(id)).toEqual(['a approved', 'a held'])
  expect((await eventsOf(id)).at(-1)).toMatchObject({
    event_type: 'mcp.offer_dismissed',
    details: { offers: [{ name: 'a', digest: dismissed.json.digest }] },
  })
  await decide('dismiss', tool('a', 'Second'))
  const types = (await eventsOf(id)).map(({ event_type }) => event_type)
  expect(types.filter((type) => type === 'mcp.offer_dismissed')).toHaveLength(1)
  await report(id, [tool('a', 'Second')])
  expect(await waitingOf(id)).toBeUndefined()
  await report(id, [tool('a', 'Third')])
  expect(await waitingOf(id)).toMatchObject({ changed: 1, names: ['a'] })
})

test('dismisses an offer that can never be approved', async () => {
  const { id } = await make()
  const misfit = { name: 'a', inputSchema: { type: 'array' } }
  await report(id, [misfit])
  expect(await waitingOf(id)).toMatchObject({ added: 1 })
  const digest = definitionOf('tool', misfit)?.digest
  const answer = await call('POST', `${servers}/${id}/offers/dismiss`, { kind: 'tool', name: 'a', digest })
  expect([answer.status, answer.json.status]).toEqual([200, 'held'])
  expect(await waitingOf(id)).toBeUndefined()
})

test('approves a dismissed definition, which then is dismissed no more, and dismisses no approved one', async () => {
  const { id } = await make({ url: 'https://tools.example.com/mcp', approval: 'required' })
  await report(id, [tool('a')])
  const body = { kind: 'tool', name: 'a', digest: definitionOf('tool', tool('a'))?.digest }
  await call('POST', `${servers}/${id}/offers/dismiss`, body)
  const approved = await call('POST', `${servers}/${id}/offers/approve`, body)
  expect(approved.json).toMatchObject({ status: 'approved', dismissed_at: null, dismissed_by: null })
  expect((await call('GET', `${servers}/${id}/offers`)).json.offers).toMatchObject([{ dismissed_at: null }])
  expect(await refused('POST', `${servers}/${id}/offers/dismiss`, body)).toEqual([409, 'conflict', 'digest'])
  expect(await refused('POST', `${servers}/${id}/offers/dismiss`, { ...body, name: 'b' })).toEqual([
    404,
    'not_found',
    null,
  ])
})

test('holds a definition whose approval is withdrawn, even during the first use', async () => {
  const { id } = await make()
  await report(id, [tool('a')])
  const digest = definitionOf('tool', tool('a'))?.digest
  const body = { kind: 'tool', name: 'a', digest }
  const back = await call('POST', `${servers}/${id}/offers/withdraw`, body)
  expect(back.json).toMatchObject({ status: 'held', approved_digest: null })
  expect((await eventsOf(id)).at(-1)).toMatchObject({
    event_type: 'mcp.offer_withdrawn',
    details: { offers: [{ name: 'a', approved_digest: digest }] },
  })
  await report(id, [tool('a')])
  expect(await offersOf(id)).toEqual(['a held'])
  expect((await call('POST', `${servers}/${id}/offers/approve`, body)).json).toMatchObject({ status: 'approved' })
  expect(await refused('POST', `${servers}/${id}/offers/withdraw`, { ...body, name: 'b' })).toEqual([
    404,
    'not_found',
    null,
  ])
})

test('approves nothing before a person does when approval is required', async () => {
  const { id } = await make({ url: 'https://tools.example.com/mcp', approval: 'required' })
  expect(await report(id, [tool('a')])).toEqual({ approved: 0, held: 1 })
  await call('PATCH', `${servers}/${id}`, { approval: 'first_use' })
  expect(await report(id, [tool('a', 'Other'), tool('b')])).toEqual({ approved: 1, held: 1 })
})

test('begins the first use of a kind when its first offer appears', async () => {
  const { id } = await make()
  expect(await report(id, [], 'prompt')).toEqual({ approved: 0, held: 0 })
  plane.clock.advance(firstUseMilliseconds)
  expect(await report(id, [{ name: 'later' }], 'prompt')).toEqual({ approved: 0, held: 1 })
})

test('keeps the newest definitions of an offer that keeps changing', async () => {
  const { id } = await make()
  await report(id, [tool('a')])
  for (let turn = 0; turn < 9; turn++) await report(id, [tool('a', `turn ${turn}`)])
  const { offers } = (await call('GET', `${servers}/${id}/offers`)).json
  expect(offers.map(({ definition }: { definition: { description: string } }) => definition.description)).toEqual([
    'Does it',
    ...['turn 4', 'turn 5', 'turn 6', 'turn 7', 'turn 8'],
  ])
})

test('bounds what is stored of a server that offers endlessly during its first use', async () => {
  const { id } = await make()
  await report(id, [tool('a')])
  await plane.store.ledger.write([
    {
      sql: `with recursive more (n) as (select 2 union all select n + 1 from more where n < ?)
        insert into mcp_offers (server_id, kind, name, digest, definition, first_seen_at)
          select ?, 'tool', 'x' || n, 'x' || n, '{}', 0 from more`,
      args: [offersLimit - 1, id],
    },
  ])
  expect(await report(id, [tool('b'), tool('c')])).toEqual({ approved: 1, held: 0 })
  expect(await report(id, [tool('d')])).toEqual({ approved: 0, held: 0 })
})

test('accepts decisions only for definitions in the canonical form of their digest', async () => {
  const { id } = await make()
  const gateway = { principal: anonymous, requestId: 'r' }
  const deps = { ...plane.dependencies, log: silentLog }
  for (const text of ['{"name": "a"}', '{"b":1,"a":2}', 'none', '[]']) {
    const taken = takeOffers(deps, gateway, { server_id: id, kind: 'tool', definitions: [text] })
    expect(taken).rejects.toMatchObject({ code: 'invalid_parameter' })
  }
})
