/**
 * A full disk, the real way: the data directory on a small tmpfs that a ballast file fills, so small that outbox and
 * ledger compete for what the ballast leaves. Needs the right to mount; where it is not there the test says so and is
 * skipped.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { chatStream } from '../fakes/chat.ts'
import { splitPlans } from '../fakes/splits.ts'
import { type FakeUpstream, startFakeUpstream, streamReply } from '../fakes/upstream.ts'
import { errorAnswer } from '../support/answers.ts'
import { api, chat, createToken, parseOrKeep } from '../support/client.ts'
import { until } from '../support/eventually.ts'
import { executable } from '../support/executable.ts'
import { fillDisk } from '../support/full-disk.ts'
import { type Gatehouse, startGatehouse, temporaryDirectory } from '../support/harness.ts'
import { eventsInLedger, outcomesOf } from '../support/recorded.ts'

setDefaultTimeout(120_000)

const directory = temporaryDirectory()
const mounted = Bun.spawnSync(['mount', '-t', 'tmpfs', '-o', 'size=24m', 'tmpfs', directory]).exitCode === 0
if (!mounted) console.warn('disk-full.test.ts is skipped: mounting a tmpfs is not permitted here')

const ballast = join(directory, 'ballast')
let upstream: FakeUpstream
let gatehouse: Gatehouse | undefined

beforeAll(async () => {
  await executable()
  upstream = await startFakeUpstream()
}, 240_000)
afterAll(async () => {
  await gatehouse?.stop()
  await upstream?.close()
  if (mounted) Bun.spawnSync(['umount', '-l', directory])
  rmSync(directory, { recursive: true, force: true })
})

test.skipIf(!mounted)(
  'a full disk makes the gateway refuse new requests before the provider call, finish running streams and recover',
  async () => {
    const started = await startGatehouse({
      upstream,
      dataDirectory: join(directory, 'data'),
    })
    gatehouse = started
    const token = (await createToken(started)).token_value
    const reply = streamReply()
    upstream.when('slow', { ...reply, split: splitPlans['at every frame'] ?? (() => []), pauseBetweenPiecesMs: 400 })
    const running = Array.from({ length: 5 }, (_, index) =>
      chat(started, { token, model: 'slow', stream: true, requestId: `running-${index}` }),
    )
    const streams = await Promise.all(running)
    fillDisk(ballast)

    const completed: string[] = []
    let refused: { status: number; body: unknown; retry: string | null } | undefined
    for (let index = 0; index < 5000 && !refused; index++) {
      const requestId = `filling-${index}`
      const callsBefore = upstream.calls.length
      const answer = await chat(started, { token, requestId })
      const body = parseOrKeep(await answer.text())
      if (answer.status === 200) completed.push(requestId)
      else {
        refused = { status: answer.status, body, retry: answer.headers.get('x-should-retry') }
        expect(upstream.calls.length).toBe(callsBefore)
      }
    }
    expect(refused?.status).toBe(503)
    expect(errorAnswer.parse(refused?.body).error).toMatchObject({
      type: 'service_unavailable',
      code: 'event_outbox_full',
    })
    expect(refused?.retry).toBeNull()
    expect(errorAnswer.parse(refused?.body).error.message).toContain('The disk is full: free space on it')
    for (let made = 0; made < 50; made++) {
      const answer = await api(started, '/v1/tokens', { body: { name: 'refused', purpose: 'general' } })
      expect([answer.status, answer.body]).toMatchObject([503, { error: { code: 'dependency_unavailable' } }])
      expect(errorAnswer.parse(answer.body).error.message).toContain('The disk is full: free space on it')
    }
    const said = started.stderr().split('\n')
    expect(said.filter((line) => line.includes('"A request failed"')).length).toBeLessThan(20)
    expect(said.some((line) => /"process":"gateway".*The disk is full: free space/.test(line))).toBe(true)
    const readiness = async () => {
      const answer = await fetch(`${started.gatewayUrl}/readyz`)
      return [answer.status, await answer.json()]
    }
    expect(await readiness()).toMatchObject([503, { ok: false, reason: expect.stringContaining('record') }])
    for (const stream of streams) expect(await stream.text()).toBe(chatStream().toString())

    rmSync(ballast)
    await until('requests are served again', async () => {
      const answer = await chat(started, { token, requestId: 'healed' })
      await answer.text()
      return answer.status === 200
    })
    expect(await readiness()).toMatchObject([200, { ok: true }])
    const expected = [...completed, ...streams.map((_, index) => `running-${index}`)]
    await until(
      'every completed answer has its outcome in the ledger',
      () => {
        const events = eventsInLedger(started)
        return expected.every((id) => outcomesOf(events, id).length > 0)
      },
      { withinMs: 30_000, everyMs: 500 },
    )
    const events = eventsInLedger(started)
    expect(expected.filter((id) => outcomesOf(events, id).length !== 1)).toEqual([])
  },
)
