/** An exchange that ends from outside while one of its policies asks a webhook: that is its end, not that policy. */
import { afterAll, expect, test } from 'bun:test'
import { eventually } from '../../../test/support/eventually.ts'
import { hashSecret } from '../../identity/secret.ts'
import { silentLog } from '../../lib/log/log.ts'
import { noMcpServers } from '../../mcp/no-servers.ts'
import { compilePolicySet } from '../../policies/chain.ts'
import { noTracer } from '../../telemetry/tracer.ts'
import { completion, question, startTestGateway, type TestGateway } from '../testing/gateway.ts'
import { eventStream, policy, streamOf } from '../testing/policies.ts'

let asked = 0
const silent = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  idleTimeout: 0,
  fetch() {
    asked += 1
    return new Promise<Response>(() => undefined)
  },
})
let running: TestGateway
let lines: string[] = []

const kinds = {
  'a policy that denies': { whenBroken: 'deny' },
  'a policy that allows': { whenBroken: 'allow' },
  'a policy that only watches': { mode: 'monitor' },
} as const

async function start(stage: 'pre_request' | 'post_request', kind: keyof typeof kinds): Promise<void> {
  asked = 0
  lines = []
  const answer = (_: Request, body: string) =>
    JSON.parse(body).stream === true ? new Response(streamOf('Hello'), eventStream) : Response.json(completion)
  const settings = { drain_seconds: 0, webhook_addresses: 'any' } as const
  const log = { ...silentLog, error: (_: object, message: string) => void lines.push(message) }
  running = await startTestGateway(answer, settings, noTracer, noMcpServers, log)
  const config = { url: `http://127.0.0.1:${silent.port}/`, timeout_ms: 30_000 }
  running.worker.policies = compilePolicySet([
    policy({ id: 'hook', kind: 'webhook', stages: [stage], config, ...kinds[kind] }),
  ])
}
afterAll(() => silent.stop(true))

type Ending = (leave: AbortController) => void
const endings: Readonly<Record<string, readonly [Ending, string]>> = {
  'its caller leaves': [(leave) => leave.abort(), 'client.left'],
  'its token is revoked': [() => running.gateway.cutTokens([hashSecret(running.secret)]), 'token.revoked'],
  'the gateway stops': [() => void running.gateway.drain(), 'gateway.drained'],
}
const places = [
  ['pre_request', false],
  ['post_request', false],
  ['post_request', true],
] as const
const cases = Object.keys(endings).flatMap((ending) =>
  places.flatMap(([stage, stream]) =>
    (Object.keys(kinds) as (keyof typeof kinds)[]).map((kind) => ({ ending, stage, stream, kind })),
  ),
)

test.each(cases)('handles $ending while $kind evaluates at $stage (stream: $stream)', async (each) => {
  const [end, reason] = endings[each.ending] ?? []
  await start(each.stage, each.kind)
  const leave = new AbortController()
  const answer = running
    .chat({ ...question, stream: each.stream }, { signal: leave.signal })
    .then((response) => response.text())
    .catch(() => 'left')
  await eventually(() => asked === 1)
  end?.(leave)
  await answer
  await eventually(() => running.worker.journal.outcomes().length > 0)
  await running.stop()
  const [outcome, ...more] = running.worker.journal.outcomes()
  expect(more).toEqual([])
  expect(outcome).toMatchObject({ verdict: expect.stringMatching(/^(error|deny)$/), reason_code: reason })
  expect(outcome?.details?.policy_results).toBeUndefined()
  expect(lines).toEqual([])
})
