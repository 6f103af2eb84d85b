/** Limits on many gateways at once, from outside: what is accepted is exactly what the limit allows. */
import { afterEach, beforeAll, beforeEach, expect, setDefaultTimeout, test } from 'bun:test'
import { type Call, type FakeUpstream, jsonReply, startFakeUpstream, streamReply } from '../fakes/upstream.ts'
import { createdToken } from '../support/answers.ts'
import { api, chat, createToken, expectAnswer } from '../support/client.ts'
import { until } from '../support/eventually.ts'
import { executable } from '../support/executable.ts'
import { type Gatehouse, operate, startGatehouse } from '../support/harness.ts'
import { type MoreGateway, startMoreGateway } from '../support/more-gateways.ts'
import { signal } from '../support/processes.ts'
import { eventsInLedger, sumsOf } from '../support/recorded.ts'

setDefaultTimeout(180_000)

let upstream: FakeUpstream
let gatehouse: Gatehouse
let more: MoreGateway[]

beforeAll(() => executable().then(() => undefined), 240_000)
beforeEach(async () => {
  upstream = await startFakeUpstream()
  gatehouse = await startGatehouse({ upstream })
  more = await Promise.all(['second', 'third'].map((name) => startMoreGateway(gatehouse, name)))
})
afterEach(async () => {
  for (const gateway of more) await gateway[Symbol.asyncDispose]()
  await gatehouse.stop()
  await upstream.close()
})

const addresses = () => [gatehouse.gatewayUrl, ...more.map(({ url }) => url)]

/**
 * Sends requests to all gateways in turn, all at once; gives the statuses and error codes, 0 where the connection
 * broke.
 */
const answersToMany = (token: string, count: number, model = 'fake-model') =>
  Promise.all(
    Array.from({ length: count }, async (_, index) => {
      const gatewayUrl = addresses()[index % addresses().length] ?? ''
      try {
        const answer = await chat({ ...gatehouse, gatewayUrl }, { token, model, stream: index % 2 === 0 })
        const [, code = null] = /"code":"([a-z_]+)"/.exec(await answer.text()) ?? []
        return { status: answer.status, code }
      } catch {
        // A gateway that is killed answers nobody.
        return { status: 0, code: null }
      }
    }),
  )

const sendMany = async (token: string, count: number, model?: string): Promise<number[]> =>
  (await answersToMany(token, count, model)).map(({ status }) => status)

const count = (statuses: readonly number[], status: number): number => statuses.filter((each) => each === status).length

const sums = (account: string) => sumsOf(gatehouse, account)

const slow = (call: Call) => ({
  ...(call.body.toString().includes('"stream":true') ? streamReply() : jsonReply()),
  headersAfterMs: 30,
})

test('exactly 100 of 500 concurrent requests, whole and streamed, are accepted on three gateways', async () => {
  upstream.when('fake-model', slow)
  const token = await createToken(gatehouse, { max_requests: 100 })
  const answers = await answersToMany(token.token_value, 500)
  const heard = answers.filter(({ status }) => status !== 0)
  const refusals = heard.filter(({ status }) => status !== 200)
  expect(heard.length - refusals.length).toBe(100)
  // A busy machine may not take in so many connections at once, nor be able to say in time that nothing is left.
  const expected = ['429 usage_authorization_request_limit_exceeded', '503 usage_authority_unavailable']
  const reasons = new Set(refusals.map(({ status, code }) => `${status} ${code}`))
  expect(reasons.difference(new Set(expected))).toEqual(new Set())
  expect(upstream.calls).toHaveLength(100)
  const account = `token/${token.id}/requests`
  await until('all is settled and given back', () => Bun.deepEquals(sums(account), { settled: 100, outstanding: 0 }))
  const told = () => eventsInLedger(gatehouse).filter(({ event_type: type }) => type === 'token.exhausted')
  await until('it is recorded that the token is used up', () => told().length > 0)
  expect(told()).toMatchObject([
    {
      reason_code: 'tokens.request_limit_exhausted',
      request_id: expect.any(String),
      details: { token_id: token.id },
    },
  ])
  const { code, stdout } = await operate(gatehouse, 'usage', 'accounts', '--prefix', `token/${token.id}`)
  expect({ code, line: stdout.includes(account) }).toEqual({ code: 0, line: true })
})

test('a lowered limit applies at once on every gateway', async () => {
  const token = await createToken(gatehouse, { max_requests: 1000 })
  const account = `token/${token.id}/requests`
  expect(count(await sendMany(token.token_value, 30), 200)).toBe(30)
  await until('all is recorded', () => sums(account).settled === 30)
  const lowered = await api(gatehouse, `/v1/tokens/${token.id}`, { method: 'PATCH', body: { max_requests: 40 } })
  expect(lowered.status).toBe(200)
  expect(lowered.body).toMatchObject({ usage: { requests: { used: 30, open: 0 }, budget: null } })
  const statuses = await sendMany(token.token_value, 60)
  await until('all is given back', () => sums(account).outstanding === 0)
  expect(30 + count(statuses, 200)).toBe(40)
  expect(sums(account).settled).toBe(40)
})

test('kills of a gateway and of the control plane lose no request and exceed no limit', async () => {
  upstream.when('fake-model', slow)
  const token = await createToken(gatehouse, { max_requests: 100 })
  const account = `token/${token.id}/requests`
  const first = sendMany(token.token_value, 60)
  await until('some are running', () => upstream.calls.length > 10)
  const restarted = more[0]?.restart()
  await until('more are running', () => upstream.calls.length > 20)
  signal(gatehouse.controlPlanePid(), 'SIGKILL')
  await Promise.all([first, restarted])
  await until('all is given back', () => sums(account).outstanding === 0 && sums(account).settled > 0, {
    withinMs: 60_000,
  })
  const statuses = await sendMany(token.token_value, 300)
  expect(count(statuses, 0)).toBe(0)
  await until('all is settled', () => Bun.deepEquals(sums(account), { settled: 100, outstanding: 0 }), {
    withinMs: 60_000,
  })
  expect(upstream.calls.length).toBeLessThanOrEqual(100)
})

test('a clone of a used-up source is shown and validated with the cause that its requests get', async () => {
  const source = await createToken(gatehouse, { max_requests: 2 })
  const made = await api(gatehouse, `/v1/tokens/${source.id}/clone`, { body: {} })
  const clone = expectAnswer(made, 201, createdToken)
  const shown = async () => {
    const { body: record } = await api(gatehouse, `/v1/tokens/${clone.id}`)
    const { body: validation } = await api(gatehouse, '/v1/tokens/validate', { body: { token: clone.token_value } })
    const listed = await api(gatehouse, '/v1/tokens?status=request_exhausted')
    return { record, validation, listed: JSON.stringify(listed.body).includes(clone.id) }
  }
  expect(await shown()).toMatchObject({ record: { status: 'active' }, validation: { valid: true }, listed: false })
  expect(count(await sendMany(source.token_value, 3), 200)).toBe(2)
  expect(await sendMany(clone.token_value, 2)).toEqual([429, 429])
  const usedUp = {
    record: { status: 'request_exhausted', depletion: { current_requests: 0, remaining_requests: 2 } },
    validation: { valid: false, reason: 'request_exhausted' },
    listed: true,
  }
  await until('the clone is shown as used up', async () => (await shown()).listed)
  expect(await shown()).toMatchObject(usedUp)
})
