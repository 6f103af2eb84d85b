import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { splitPlans } from '../fakes/splits.ts'
import { type FakeUpstream, startFakeUpstream, streamReply } from '../fakes/upstream.ts'
import { errorAnswer, revokedToken } from '../support/answers.ts'
import { chat, createToken, expectAnswer, parseOrKeep, revoke } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'
import { type Gatehouse, startGatehouse } from '../support/harness.ts'

setDefaultTimeout(120_000)

let upstream: FakeUpstream
let gatehouse: Gatehouse

beforeAll(async () => {
  upstream = await startFakeUpstream()
  gatehouse = await startGatehouse({ upstream })
}, 240_000)
afterAll(async () => {
  await gatehouse?.stop()
  await upstream?.close()
})

interface Sent {
  at: number
  status: number
}

/** Sends requests one after another until told to stop; notes when each was sent. */
function keepSending(token: string): { sent: Sent[]; stop(): Promise<void> } {
  const sent: Sent[] = []
  let going = true
  const loop = (async () => {
    while (going) {
      const at = performance.now()
      const answer = await chat(gatehouse, { token })
      await answer.arrayBuffer()
      sent.push({ at, status: answer.status })
    }
  })()
  return {
    sent,
    async stop() {
      going = false
      await loop
    },
  }
}

test('no request is accepted after a revoke was answered, under repeated load', async () => {
  for (let round = 0; round < 10; round++) {
    const token = await createToken(gatehouse, { name: `round ${round}` })
    const senders = Array.from({ length: 6 }, () => keepSending(token.token_value))
    await eventually(() => senders.every(({ sent }) => sent.length >= 3))
    const { propagation } = expectAnswer(await revoke(gatehouse, token.id), 200, revokedToken)
    const answeredAt = performance.now()
    await eventually(() => senders.every(({ sent }) => sent.filter(({ at }) => at > answeredAt).length >= 3))
    await Promise.all(senders.map(({ stop }) => stop()))
    const sent = senders.flatMap((sender) => sender.sent)
    const before = sent.filter(({ at }) => at <= answeredAt)
    const after = sent.filter(({ at }) => at > answeredAt)
    expect({ round, accepted: after.filter(({ status }) => status !== 401).length }).toEqual({ round, accepted: 0 })
    expect(before.every(({ status }) => status === 200 || status === 401)).toBe(true)
    expect(propagation).toMatchObject({ connected: 1, acknowledged: 1, unreachable: [] })
    expect(Date.parse(propagation.effective_by)).toBeLessThanOrEqual(Date.now())
  }
})

test('a request running when its token is revoked may finish', async () => {
  const token = await createToken(gatehouse)
  const reply = streamReply()
  upstream.next({ ...reply, split: splitPlans['at every frame'] ?? (() => []), pauseBetweenPiecesMs: 60 })
  const answer = await chat(gatehouse, { token: token.token_value, stream: true })
  expectAnswer(await revoke(gatehouse, token.id), 200, revokedToken)
  expect(Buffer.from(await answer.arrayBuffer()).toString()).toBe(Buffer.from(reply.body ?? '').toString())
  expect((await chat(gatehouse, { token: token.token_value })).status).toBe(401)
})

test('the refusal of a revoked token names the token resource and not the secret', async () => {
  const token = await createToken(gatehouse)
  await revoke(gatehouse, token.id)
  const answer = await chat(gatehouse, { token: token.token_value })
  const refusal = errorAnswer.parse(parseOrKeep(await answer.text()))
  expect(refusal.error).toMatchObject({ type: 'authentication_error', code: 'invalid_api_token' })
  expect(refusal.error.message).toContain(token.resource_vrn)
  expect(refusal.error.message.toLowerCase()).toContain('revoked')
  expect(refusal.error.message).not.toContain(token.token_value)
})

test('a second revoke changes nothing and has the same answer', async () => {
  const token = await createToken(gatehouse)
  const first = expectAnswer(await revoke(gatehouse, token.id), 200, revokedToken)
  const second = expectAnswer(await revoke(gatehouse, token.id), 200, revokedToken)
  const { propagation: _, ...record } = first
  const { propagation: __, ...again } = second
  expect(again).toEqual(record)
  expect(record.status).toBe('revoked')
})

test('a revoke during a pause of the gateway says until when it waits, and the resumed gateway refuses the token', async () => {
  const token = await createToken(gatehouse)
  expect((await chat(gatehouse, { token: token.token_value })).status).toBe(200)
  const gateway = gatehouse.gatewayPid()
  process.kill(gateway, 'SIGSTOP')
  try {
    const { propagation } = expectAnswer(await revoke(gatehouse, token.id), 200, revokedToken)
    expect(propagation.acknowledged).toBe(0)
    expect(propagation.unreachable.length).toBe(1)
    expect(Date.parse(propagation.effective_by)).toBeGreaterThan(Date.now())
    expect(propagation.unreachable[0]?.until).toBe(propagation.effective_by)
  } finally {
    process.kill(gateway, 'SIGCONT')
  }
  const deadline = performance.now() + 30_000
  let status = 200
  while (status !== 401 && performance.now() < deadline) {
    status = (await chat(gatehouse, { token: token.token_value })).status
  }
  expect(status).toBe(401)
})
