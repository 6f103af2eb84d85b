/** A gateway whose host crashed, or whose disk is an older copy: what it may have spent counts as spent, and is told. */
import { afterEach, beforeAll, beforeEach, expect, setDefaultTimeout, test } from 'bun:test'
import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { bootRecordSchema, decodeRecord, encodeRecord, recordKinds } from '../../src/fleet/outbox/record.ts'
import { type FakeUpstream, startFakeUpstream } from '../fakes/upstream.ts'
import { chat, createToken } from '../support/client.ts'
import { until } from '../support/eventually.ts'
import { executable } from '../support/executable.ts'
import { type Gatehouse, startGatehouse } from '../support/harness.ts'
import { type MoreGateway, startMoreGateway } from '../support/more-gateways.ts'
import { eventsInLedger, sumsOf } from '../support/recorded.ts'

setDefaultTimeout(180_000)

let upstream: FakeUpstream
let gatehouse: Gatehouse
let second: MoreGateway

beforeAll(() => executable().then(() => undefined), 240_000)
beforeEach(async () => {
  upstream = await startFakeUpstream()
  gatehouse = await startGatehouse({ upstream })
  second = await startMoreGateway(gatehouse, 'second')
})
afterEach(async () => {
  await second[Symbol.asyncDispose]()
  await gatehouse.stop()
  await upstream.close()
})

const limit = 60

async function accepted(token: string, url: string, count: number): Promise<number> {
  const statuses = await Promise.all(
    Array.from({ length: count }, async () => {
      const answer = await chat({ ...gatehouse, gatewayUrl: url }, { token })
      await answer.text()
      return answer.status
    }),
  )
  return statuses.filter((status) => status === 200).length
}

const losses = () => eventsInLedger(gatehouse).filter(({ event_type: type }) => type === 'usage.lease_lost')

function amountLost(account: string): number {
  const amounts = losses().flatMap(({ details }) => details?.amounts as { account: string; amount: number }[])
  return amounts.filter((each) => each.account === account).reduce((sum, { amount }) => sum + amount, 0)
}

/** All that the limit allowed was accepted or is lost, once; the gateway that came back accepts what is left. */
async function expectNoneTwice(token: { id: string; token_value: string }, before: number): Promise<void> {
  const account = `token/${token.id}/requests`
  await until('what it held is told to be lost', () => losses().length > 0, { withinMs: 60_000 })
  await until('nothing is held', () => sumsOf(gatehouse, account).outstanding === 0, { withinMs: 60_000 })
  await second.ready()
  const lost = amountLost(account)
  expect(lost).toBeGreaterThan(0)
  const after =
    (await accepted(token.token_value, second.url, limit)) +
    (await accepted(token.token_value, gatehouse.gatewayUrl, limit))
  expect(before + lost + after).toBe(limit)
  expect(upstream.calls).toHaveLength(before + after)
  await until('all is settled', () => Bun.deepEquals(sumsOf(gatehouse, account), { settled: limit, outstanding: 0 }))
}

/** As if the host had begun another run since: the journal's records name the former one. */
function bootAnew(directory: string): void {
  const outbox = join(directory, 'gateway', 'worker', 'outbox')
  for (const name of readdirSync(outbox, { recursive: true, encoding: 'utf8' })) {
    if (!name.endsWith('.segment')) continue
    const path = join(outbox, name)
    const bytes = readFileSync(path)
    for (let at = 0; ; ) {
      const record = decodeRecord(bytes, at)
      if (record === 'unwritten' || record === 'bad') break
      if (record.kind === recordKinds.started || record.kind === recordKinds.segment) {
        const content = bootRecordSchema.loose().parse(JSON.parse(record.json.toString()))
        const former = content.boot_id.replace(/[0-9a-f]/g, (digit) => (digit === '0' ? '1' : '0'))
        encodeRecord(bytes, at, record.seq, record.kind, JSON.stringify({ ...content, boot_id: former }))
      }
      at = record.end
    }
    writeFileSync(path, bytes)
  }
}

test('amounts reserved by a crashed host are reported as lost and spent by no other gateway', async () => {
  const token = await createToken(gatehouse, { max_requests: limit })
  const account = `token/${token.id}/requests`
  const before = await accepted(token.token_value, second.url, 5)
  expect(before).toBe(5)
  await until('the outcomes are settled', () => sumsOf(gatehouse, account).settled === 5)
  expect(sumsOf(gatehouse, account).outstanding).toBeGreaterThan(0)
  await second.restart(() => bootAnew(second.directory))
  await expectNoneTwice(token, before)
})

test('a disk restored from an older copy starts as a new instance, and its reserved amounts are lost', async () => {
  const token = await createToken(gatehouse, { max_requests: limit })
  const account = `token/${token.id}/requests`
  const copy = `${second.directory}-copy`
  let before = await accepted(token.token_value, second.url, 2)
  await until('the outcomes are settled', () => sumsOf(gatehouse, account).settled === 2)
  cpSync(second.directory, copy, { recursive: true })
  before += await accepted(token.token_value, second.url, 3)
  await until('all outcomes are settled', () => sumsOf(gatehouse, account).settled === before)
  expect(sumsOf(gatehouse, account).outstanding).toBeGreaterThan(0)
  await second.restart(() => {
    rmSync(second.directory, { recursive: true })
    cpSync(copy, second.directory, { recursive: true })
  })
  // The control plane retires the instance of the copy, whose process ends: wait for the process after it.
  await until('the retired gateway was started again', () => second.replacements() > 0, { withinMs: 60_000 })
  await expectNoneTwice(token, before)
  rmSync(copy, { recursive: true })
})
