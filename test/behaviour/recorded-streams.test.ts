import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { type RecordedStream, recordedStreams } from '../fakes/recordings.ts'
import { splitPlans } from '../fakes/splits.ts'
import { type FakeUpstream, startFakeUpstream, streamReply } from '../fakes/upstream.ts'
import { createToken } from '../support/client.ts'
import { type Gatehouse, startGatehouse } from '../support/harness.ts'

setDefaultTimeout(120_000)

const streams = recordedStreams()
const asked: Readonly<Record<RecordedStream['route'], object>> = {
  // Usage is asked for, so that the gateway has nothing to ask for and to take out again.
  '/v1/chat/completions': { model: 'fake-model', messages: [], stream: true, stream_options: { include_usage: true } },
  // Of a stored response the id is replaced.
  '/v1/responses': { model: 'fake-model', input: 'hello', store: false, stream: true },
  '/v1/messages': { model: 'fake-model', max_tokens: 5, messages: [], stream: true },
}
/** Up to this length a stream is cut at every place. */
const shortBytes = 1000

describe('recorded streams', () => {
  let upstream: FakeUpstream
  let gatehouse: Gatehouse
  let token: string

  beforeAll(async () => {
    upstream = await startFakeUpstream()
    gatehouse = await startGatehouse({ upstream })
    token = (await createToken(gatehouse)).token_value
  }, 240_000)
  afterAll(async () => {
    await gatehouse?.stop()
    await upstream?.close()
  })

  const replay = async (route: RecordedStream['route'], bytes: Buffer, at: readonly number[]): Promise<string> => {
    upstream.next({ ...streamReply(bytes), split: () => [...at] })
    const answer = await fetch(`${gatehouse.gatewayUrl}${route}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify(asked[route]),
    })
    return await answer.text()
  }

  for (const { name, route, bytes } of streams) {
    test(`${name} passes byte for byte at every split`, async () => {
      const whole = bytes.toString()
      const random = splitPlans['at random']?.(bytes) ?? []
      const few = random.filter((_, index) => index % 7 === 0)
      const plans = bytes.length > 20_000 ? [few] : [random, splitPlans['inside every UTF-8 character']?.(bytes) ?? []]
      if (bytes.length <= shortBytes) for (let cut = 1; cut < bytes.length; cut++) plans.push([cut])
      for (const at of plans) {
        const passed = await replay(route, bytes, at)
        if (passed !== whole) expect([at, passed]).toEqual([at, whole])
      }
    })
  }
})
