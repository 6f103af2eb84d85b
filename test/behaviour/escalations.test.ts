import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { z } from 'zod'
import { api, createToken, expectAnswer } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'
import { type Gatehouse, operate, run, startGatehouse } from '../support/harness.ts'
import { eventsInLedger } from '../support/recorded.ts'

setDefaultTimeout(120_000)

let gatehouse: Gatehouse
let token: { id: string; token_value: string }

beforeAll(async () => {
  gatehouse = await startGatehouse()
  token = await createToken(gatehouse)
  const policy = {
    name: 'large sums',
    kind: 'escalate',
    stages: ['pre_request'],
    when: 'request.text.contains("transfer")',
    config: { reason_code: 'payments.transfer' },
  }
  expect((await api(gatehouse, '/v1/policies', { body: policy })).status).toBe(201)
  await eventually(
    async () => expect((await ask('transfer: is the policy there?')).headers.get('x-service-verdict')).toBe('ESCALATE'),
    { withinMs: 30_000 },
  )
}, 240_000)
afterAll(() => gatehouse?.stop())

const ask = (text: string, secret = token.token_value, more: object = {}): Promise<Response> =>
  fetch(`${gatehouse.gatewayUrl}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'simulator/echo', messages: [{ role: 'user', content: text }], ...more }),
  })

const waiting = z.object({
  verdictan: z.object({ escalation: z.object({ id: z.uuid(), status: z.literal('queued') }) }),
})

/** Sends what has to wait and gives the id that the answer names. */
async function escalated(text: string, secret = token.token_value, more: object = {}): Promise<string> {
  const answer = await ask(text, secret, more)
  expect([answer.status, answer.headers.get('x-service-verdict')]).toEqual([200, 'ESCALATE'])
  return waiting.parse(await answer.json()).verdictan.escalation.id
}

const record = z.looseObject({
  id: z.uuid(),
  status: z.string(),
  attempts: z.number(),
  claimed_by: z.string().nullable(),
  resolution: z.string().nullable(),
  version: z.number(),
})

const arrived = (id: string) =>
  eventually(async () => expectAnswer(await api(gatehouse, `/v1/escalations/${id}`), 200, record), { everyMs: 20 })

const post = (id: string, action: string, body?: object) =>
  api(gatehouse, `/v1/escalations/${id}/${action}`, { method: 'POST', ...(body === undefined ? {} : { body }) })

test('an escalated request is queued under the id that its answer names', async () => {
  const id = await escalated('transfer 1')
  const queued = await arrived(id)
  expect(queued).toMatchObject({
    id,
    status: 'queued',
    reason_code: 'payments.transfer',
    token: { id: token.id },
    policy: { name: 'large sums' },
    request: { family: 'chat', model: 'simulator/echo' },
  })
  const decision = eventsInLedger(gatehouse).find(
    ({ event_type, details }) => event_type === 'decision' && JSON.stringify(details).includes(id),
  )
  expect(decision?.verdict).toBe('approval_required')
  const event = eventsInLedger(gatehouse).find(
    ({ event_type, details }) => event_type === 'escalation.queued' && details?.escalation_id === id,
  )
  expect(event?.verdict).toBe('pending')
  expect(event?.event_attribution.token_id).toBe(token.id)
})

test('an identical retry joins the same escalation, and another request does not', async () => {
  const first = await escalated('transfer twice')
  await arrived(first)
  const second = await escalated('transfer twice')
  const other = await escalated('transfer something else')
  expect((await arrived(second)).id).toBe(first)
  expect((await arrived(first)).attempts).toBe(2)
  expect((await arrived(other)).id).toBe(other)
})

test('a retry with another session joins the same escalation, and its grant lets a third session pass', async () => {
  const session = (key: string) => ({ prompt_cache_key: key, metadata: { user_id: key } })
  const first = await escalated('transfer in a session', undefined, session('one'))
  await arrived(first)
  const second = await escalated('transfer in a session', undefined, session('two'))
  expect((await arrived(second)).id).toBe(first)
  expect((await post(first, 'resolve', { resolution: 'allow', grant_once_seconds: 600 })).status).toBe(200)
  await eventually(
    async () => {
      const answer = await ask('transfer in a session', undefined, session('three'))
      expect(answer.headers.get('x-service-verdict')).toBe('ALLOW')
    },
    { withinMs: 30_000 },
  )
})

test('a claimed escalation is decided once, and the decision sends nothing', async () => {
  const id = await escalated('transfer and claim')
  await arrived(id)
  expect((await post(id, 'claim')).body).toMatchObject({ status: 'claimed' })
  expect((await post(id, 'unclaim')).body).toMatchObject({ status: 'queued', claimed_by: null })
  const resolved = await post(id, 'resolve', { resolution: 'block', note: 'Too much' })
  expect(resolved.body).toMatchObject({ status: 'resolved', resolution: 'block', note: 'Too much', grant: null })
  expect((await post(id, 'resolve', { resolution: 'allow' })).status).toBe(409)
  expect((await ask('transfer and claim')).headers.get('x-service-verdict')).toBe('ESCALATE')
  const types = eventsInLedger(gatehouse)
    .filter(({ details }) => details?.escalation_id === id)
    .map(({ event_type }) => event_type)
  expect(types).toEqual(['escalation.queued', 'escalation.claimed', 'escalation.unclaimed', 'escalation.resolved'])
})

test('a grant lets the same token send the same request once and no other', async () => {
  const id = await escalated('transfer with leave')
  await arrived(id)
  const resolved = await post(id, 'resolve', { resolution: 'allow', grant_once_seconds: 600 })
  expect(resolved.body).toMatchObject({ status: 'resolved', grant: { id } })
  const stranger = await createToken(gatehouse)
  const answer = await eventually(
    async () => {
      expect((await ask('transfer with leave', stranger.token_value)).headers.get('x-service-verdict')).toBe('ESCALATE')
      expect((await ask('transfer with leave!')).headers.get('x-service-verdict')).toBe('ESCALATE')
      const sent = await ask('transfer with leave')
      expect(sent.headers.get('x-service-verdict')).toBe('ALLOW')
      return sent
    },
    { withinMs: 30_000 },
  )
  expect(JSON.stringify(await answer.json())).toContain('transfer with leave')
  expect((await ask('transfer with leave')).headers.get('x-service-verdict')).toBe('ESCALATE')
})

test('a person cannot decide about their own request', async () => {
  const admin = await createToken(gatehouse, { name: 'an admin', roles: ['admin'] })
  const id = await escalated('transfer by an admin', admin.token_value)
  await arrived(id)
  const own = await api(gatehouse, `/v1/escalations/${id}/resolve`, {
    token: admin.token_value,
    body: { resolution: 'allow' },
  })
  expect([own.status, own.body]).toMatchObject([403, { error: { code: 'permission_denied' } }])
})

test('a token without the permission cannot read escalations', async () => {
  const answer = await api(gatehouse, '/v1/escalations', { token: token.token_value })
  expect([answer.status, answer.body]).toMatchObject([403, { error: { code: 'permission_denied' } }])
})

test('invalid input is refused with the name of the field', async () => {
  const id = await escalated('transfer badly')
  await arrived(id)
  expect((await post(id, 'resolve', { resolution: 'maybe' })).body).toMatchObject({ error: { param: 'resolution' } })
  expect((await post(id, 'resolve', { resolution: 'block', grant_once_seconds: 5 })).body).toMatchObject({
    error: { param: 'grant_once_seconds' },
  })
  expect((await api(gatehouse, '/v1/escalations?status=lost')).body).toMatchObject({ error: { param: 'status' } })
  expect((await api(gatehouse, `/v1/escalations/${crypto.randomUUID()}`)).status).toBe(404)
})

test('the list pages, filters by status and refuses a cursor of another filter', async () => {
  const page = z.object({ escalations: z.array(record), next_cursor: z.string().nullable() })
  const first = expectAnswer(await api(gatehouse, '/v1/escalations?limit=2'), 200, page)
  expect(first.escalations).toHaveLength(2)
  const next = `/v1/escalations?limit=2&cursor=${first.next_cursor}`
  const second = expectAnswer(await api(gatehouse, next), 200, page)
  expect(second.escalations.some(({ id }) => first.escalations.some((seen) => seen.id === id))).toBe(false)
  expect((await api(gatehouse, `${next}&status=queued`)).status).toBe(422)
  const resolved = expectAnswer(await api(gatehouse, '/v1/escalations?status=resolved'), 200, page)
  expect(resolved.escalations.every(({ status }) => status === 'resolved')).toBe(true)
})

test('the command line lists and decides escalations', async () => {
  const id = await escalated('transfer from the terminal')
  await arrived(id)
  expect((await operate(gatehouse, 'escalation', 'list', '--status', 'queued')).stdout).toContain(id)
  expect((await operate(gatehouse, 'escalation', 'resolve', id)).code).toBe(2)
  const decided = await operate(gatehouse, 'escalation', 'resolve', id, '--block', '--note', 'No', '--json')
  expect(JSON.parse(decided.stdout)).toMatchObject({ id, status: 'resolved', resolution: 'block' })
})

test('the command line undoes a decision before it takes effect, and refuses one that has', async () => {
  const id = await escalated('transfer and undo from the terminal')
  await arrived(id)
  const decided = await operate(gatehouse, 'escalation', 'resolve', id, '--block', '--undo-seconds', '60', '--json')
  expect(JSON.parse(decided.stdout)).toMatchObject({ id, status: 'deciding', resolution: 'block' })
  const undone = await operate(gatehouse, 'escalation', 'undo', id, '--json')
  expect(JSON.parse(undone.stdout)).toMatchObject({ id, status: 'queued', resolution: null })
  const again = await operate(gatehouse, 'escalation', 'undo', id)
  expect([again.code, again.stderr]).toEqual([1, expect.stringContaining('There is no decision to undo')])
  expect((await operate(gatehouse, 'escalation', 'resolve', id, '--block', '--undo-seconds', 'soon')).code).toBe(2)
})

test('an approval lets nothing through while it can be undone, and once after that', async () => {
  const id = await escalated('transfer and undo')
  await arrived(id)
  const allowing = { resolution: 'allow', grant_once_seconds: 600 }
  const deciding = await post(id, 'resolve', { ...allowing, undo_seconds: 60 })
  expect(deciding.body).toMatchObject({ status: 'deciding', resolution: 'allow', resolved_at: null, grant: null })
  expect((await ask('transfer and undo')).headers.get('x-service-verdict')).toBe('ESCALATE')
  expect((await post(id, 'resolve', { resolution: 'block' })).status).toBe(409)
  expect((await post(id, 'undo')).body).toMatchObject({ status: 'queued', resolution: null, takes_effect_at: null })
  expect((await post(id, 'undo')).status).toBe(409)
  expect((await post(id, 'resolve', { ...allowing, undo_seconds: 1 })).status).toBe(200)
  await eventually(
    async () => expect((await ask('transfer and undo')).headers.get('x-service-verdict')).toBe('ALLOW'),
    { withinMs: 30_000 },
  )
  expect((await ask('transfer and undo')).headers.get('x-service-verdict')).toBe('ESCALATE')
  const types = eventsInLedger(gatehouse).filter(({ details }) => details?.escalation_id === id)
  expect(types.map(({ event_type }) => event_type).toSorted()).toEqual([
    ...['escalation.decided', 'escalation.decided', 'escalation.queued', 'escalation.resolved', 'escalation.undone'],
  ])
})

test('a member reads the decision about its request without the answer that waits, and a reviewer with it', async () => {
  const body = {
    ...{ name: 'latin', kind: 'escalate', stages: ['pre_response'], when: 'response.text.contains("orem")' },
    config: { reason_code: 'a.latin', capture_escalated: true },
  }
  expect((await api(gatehouse, '/v1/policies', { body })).status).toBe(201)
  const member = (await createToken(gatehouse, { roles: ['member'] })).token_value
  const asked = () => ask('say something', member, { model: 'simulator/lorem' })
  const held = await eventually(async () => waiting.parse(await (await asked()).json()).verdictan.escalation, {
    withinMs: 30_000,
  })
  await arrived(held.id)
  const read = async (secret: string): Promise<string> => {
    const tail = ['events', 'tail', '--since', '1h', '--event-type', 'decision', '--json']
    const env = { SERVICE_API_URL: gatehouse.baseUrl, SERVICE_API_TOKEN: secret }
    return JSON.stringify([
      (await api(gatehouse, '/v1/events?since=1h&event_type=decision', { token: secret })).body,
      (await run(tail, { env })).stdout,
    ])
  }
  const [ofMember, ofReviewer] = [await read(member), await read(gatehouse.adminToken)]
  expect(ofMember).toContain(held.id)
  expect(ofMember).not.toContain('ipsum')
  expect(ofReviewer.split('ipsum').length).toBeGreaterThan(2)
})
