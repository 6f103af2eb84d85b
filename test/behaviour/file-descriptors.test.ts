/** A gateway without a file descriptor left, the real way: its limit is lowered to what it has open. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { connect } from 'node:net'
import { type FakeUpstream, startFakeUpstream } from '../fakes/upstream.ts'
import { createToken } from '../support/client.ts'
import { until } from '../support/eventually.ts'
import { executable } from '../support/executable.ts'
import { type Gatehouse, startGatehouse } from '../support/harness.ts'
import { eventsInLedger, outcomesOf } from '../support/recorded.ts'

setDefaultTimeout(60_000)

let upstream: FakeUpstream
let gatehouse: Gatehouse

beforeAll(async () => {
  await executable()
  upstream = await startFakeUpstream()
  gatehouse = await startGatehouse({ upstream })
}, 240_000)
afterAll(async () => {
  await gatehouse?.stop()
  await upstream?.close()
})

/** A connection that the gateway has taken in, over which requests can still come. */
async function connected(gatewayUrl: string) {
  const { hostname, port, host } = new URL(gatewayUrl)
  const socket = connect(Number(port), hostname)
  let heard = ''
  socket.on('data', (bytes) => {
    heard += bytes.toString()
  })
  const request = async (head: string, body = '') => {
    heard = ''
    socket.write(`${head} HTTP/1.1\r\nHost: ${host}\r\nContent-Length: ${body.length}\r\n`)
    socket.write(
      `Authorization: Bearer ${token}\r\nContent-Type: application/json\r\nx-request-id: ${id}\r\n\r\n${body}`,
    )
    await until('an answer came', () => /\r\n\r\n[\s\S]*\}\s*(0\r\n\r\n)?$/.test(heard))
    return heard
  }
  const token = (await createToken(gatehouse)).token_value
  const id = 'without-a-descriptor'
  await request('GET /healthz')
  return {
    ask: () => request('POST /v1/chat/completions', '{"model":"m","messages":[{"role":"user","content":"hello"}]}'),
    end: () => socket.destroy(),
    id,
  }
}

function limitDescriptors(pid: number, limit: number | 'unlimited'): void {
  const ran = Bun.spawnSync(['prlimit', `--pid=${pid}`, `--nofile=${limit}:`])
  if (ran.exitCode !== 0) throw new Error(ran.stderr.toString())
}

test('a call without a free file descriptor is recorded as a gateway fault, and the log says what to do', async () => {
  const pid = gatehouse.gatewayPid()
  const connection = await connected(gatehouse.gatewayUrl)
  limitDescriptors(pid, Math.max(...readdirSync(`/proc/${pid}/fd`).map(Number)) + 1)
  const filler = []
  const said = () => gatehouse.stderr().split('\n')
  try {
    // What is free below the highest one in use is taken by connections that wait to be answered.
    for (let n = 0; n < 64; n++) filler.push(connect(Number(new URL(gatehouse.gatewayUrl).port), '127.0.0.1'))
    await Bun.sleep(100)
    const refused = await connection.ask()
    expect(refused).toStartWith('HTTP/1.1 503')
    expect(refused).toContain('"code":"file_descriptors_exhausted"')
    expect(refused.toLowerCase()).toContain('x-service-error-source: gateway')
    expect(upstream.calls).toHaveLength(0)
    await until('the log has the cause', () =>
      said().some((line) => line.includes('"process":"gateway"') && line.includes('ulimit -n')),
    )
  } finally {
    for (const socket of filler) socket.destroy()
    limitDescriptors(pid, 4096)
  }
  await until('it answers again', async () => (await connection.ask()).startsWith('HTTP/1.1 200'))
  connection.end()
  await until('both outcomes are recorded', () => outcomesOf(eventsInLedger(gatehouse), connection.id).length >= 2)
  const codes = outcomesOf(eventsInLedger(gatehouse), connection.id).map(({ reason_code }) => reason_code)
  expect(codes).toContain('file_descriptors_exhausted')
  expect(codes).not.toContain('provider.unreachable')
})
