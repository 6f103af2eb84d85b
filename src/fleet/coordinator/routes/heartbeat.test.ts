import { afterEach, beforeEach, expect, test } from 'bun:test'
import { eventually } from '../../../../test/support/eventually.ts'
import { newId } from '../../../lib/ids.ts'
import { controlClient } from '../../agent/control-client.ts'
import { readEventStream } from '../../protocol/event-stream.ts'
import { streamMessageSchema } from '../../protocol/wire.ts'
import { TemporaryFleet } from '../../testing/temporary-fleet.ts'

let fleet: TemporaryFleet

beforeEach(async () => {
  fleet = await TemporaryFleet.start()
})

afterEach(async () => {
  await fleet.remove()
})

test('accepts an acknowledgement only for versions of this primary', async () => {
  const client = controlClient(fleet.url, fetch)
  const instance = { instance_id: newId(), version: '0.0.0', workers: 1 }
  const { session } = await client.bootstrap(fleet.runtimeToken, instance)
  const ending = new AbortController()
  let streamId = ''
  const body = await client.stream(session.token, { worker: 0 }, ending.signal)
  const following = readEventStream(
    body,
    (data) => {
      const message = streamMessageSchema.parse(JSON.parse(data))
      if (message.kind === 'handshake') streamId = message.stream_id
    },
    () => undefined,
  ).catch(() => undefined)
  await eventually(() => streamId !== '')
  const head = fleet.change(() => undefined)
  const heartbeat = async (version: number, history: string, nonce: string): Promise<number> => {
    await client.heartbeat(session.token, {
      worker: 0,
      stream_id: streamId,
      acknowledged_version: version,
      history,
      nonce,
    })
    return (await fleet.control.fleet.propagation(head.version)).acknowledged
  }
  const refused = await Promise.all([
    heartbeat(head.version + 7, head.history, head.nonce),
    heartbeat(head.version, newId(), head.nonce),
    heartbeat(head.version, head.history, newId()),
  ])
  expect(refused).toEqual([0, 0, 0])
  expect(await heartbeat(head.version, head.history, head.nonce)).toBe(1)
  ending.abort()
  await following
})
