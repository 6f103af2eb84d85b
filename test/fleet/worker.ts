/** A worker that is only its wire: it follows the change stream and says what a test tells it to. */
import { z } from 'zod'
import { createdToken } from '../support/answers.ts'
import { api, expectAnswer } from '../support/client.ts'
import { until } from '../support/eventually.ts'
import type { ControlPlane } from './control-plane.ts'

const headShape = z.object({ version: z.number(), nonce: z.string(), history: z.string() })
export type StateHead = z.infer<typeof headShape>
const message = z.discriminatedUnion('kind', [
  z.looseObject({ kind: z.literal('handshake'), stream_id: z.string(), head: headShape }),
  z.looseObject({ kind: z.literal('change'), head: headShape, since: z.number(), revoked: z.array(z.string()) }),
  z.looseObject({ kind: z.enum(['fenced', 'recall', 'slots']) }),
])

const credential = z.object({
  state: z.object({ kind: z.literal('replica'), url: z.string(), token: z.string(), expires_at: z.string() }),
})

export interface WireWorker {
  revocations: { version: number; hash: string }[]
  head(): StateHead
  /** Opens the stream again where it has ended; whether it is open. */
  connected(): Promise<boolean>
  heartbeat(known: StateHead): Promise<unknown>
  reportRevocations(history: string): Promise<unknown>
  /** What it reads the state with from now on. */
  renewCredential(): Promise<{ url: string; token: string; expires_at: string }>
  close(): Promise<void>
}

export async function connectWorker(
  plane: ControlPlane,
  { gatewayId, teamId }: { gatewayId: string; teamId: string },
): Promise<WireWorker> {
  const body = {
    name: 'a worker',
    purpose: 'gateway_runtime',
    principal_type: 'gateway_runtime',
    bindings: { gateway_id: gatewayId, team_id: teamId },
  }
  const { token_value: runtimeToken } = expectAnswer(await api(plane, '/v1/tokens', { body }), 201, createdToken)
  const instanceId = Bun.randomUUIDv7()
  const revocations: WireWorker['revocations'] = []
  let session = ''
  let head: StateHead | null = null
  let streamId: string | null = null
  let ending = new AbortController()
  const call = async (path: string, token: string, sent: object): Promise<unknown> => {
    const answer = await fetch(`${plane.baseUrl}/v1/gateway-runtime/${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify(sent),
    })
    if (!answer.ok) throw new Error(`${path} answered ${answer.status}: ${await answer.text()}`)
    return await answer.json()
  }
  const take = (text: string) => {
    const data = text.split('\n').find((line) => line.startsWith('data: '))
    if (data === undefined) return
    const said = message.parse(JSON.parse(data.slice('data: '.length)))
    if (said.kind === 'handshake' || said.kind === 'change') head = said.head
    if (said.kind === 'handshake') streamId = said.stream_id
    if (said.kind === 'change') revocations.push(...said.revoked.map((hash) => ({ version: said.head.version, hash })))
  }
  const follow = async () => {
    ending = new AbortController()
    const answer = await fetch(`${plane.baseUrl}/v1/gateway-runtime/stream?worker=0`, {
      headers: { authorization: `Bearer ${session}` },
      signal: ending.signal,
    })
    if (!answer.ok || answer.body === null) throw new Error(`The stream answered ${answer.status}`)
    let text = ''
    for await (const bytes of answer.body) {
      text += Buffer.from(bytes).toString()
      const frames = text.split('\n\n')
      text = frames.pop() ?? ''
      for (const frame of frames) take(frame)
    }
  }
  const open = async (): Promise<boolean> => {
    if (streamId !== null) return true
    const reply = await call('bootstrap', runtimeToken, { instance_id: instanceId, version: '0.2.0', workers: 1 })
    session = z.object({ session: z.object({ token: z.string() }) }).parse(reply).session.token
    const closed = () => {
      streamId = null
    }
    void follow().then(closed, closed)
    await until('handshake', () => streamId !== null)
    return true
  }
  await open()
  const held = () => ({ worker: 0, stream_id: streamId })
  return {
    revocations,
    head: () => headShape.parse(head),
    connected: () => open().catch(() => false),
    heartbeat: ({ version, history, nonce }) =>
      call('heartbeat', session, { ...held(), acknowledged_version: version, history, nonce }),
    reportRevocations: (history) => call('revocations', session, { ...held(), history, revocations }),
    renewCredential: async () => credential.parse(await call('credential', session, {})).state,
    close: async () => ending.abort(),
  }
}
