/** Policies on requests in several rounds, between callers and servers of MCP 2026-07-28. */
import { afterEach, expect, test } from 'bun:test'
import type { Json } from '../../../mcp/connection.ts'
import { modernVersion } from '../../../mcp/protocol.ts'
import { gatewayServers, storedServer } from '../../../mcp/testing/servers.ts'
import { compilePolicySet } from '../../../policies/chain.ts'
import type { StoredPolicy } from '../../../policies/stored-policy.ts'
import { startTestGateway } from '../../testing/gateway.ts'
import { modernCaller } from '../../testing/modern-mcp.ts'
import { testPolicy } from '../../testing/worker.ts'

const stops: (() => unknown)[] = []
afterEach(async () => {
  for (const stop of stops.splice(0).toReversed()) await stop()
})

const state = 'what ann@example.com was asked'
const question = {
  method: 'elicitation/create',
  params: { mode: 'form', message: 'Mail ann@example.com?', requestedSchema: { type: 'object', properties: {} } },
}

/** A server that asks before it answers, and keeps what it was sent. */
async function start(action: 'redact' | 'block', stages: StoredPolicy['stages']) {
  const calls: Json[] = []
  const server = Bun.serve({
    port: 0,
    async fetch(request) {
      const { id, method, params } = (await request.json()) as { id: number; method: string; params: Json }
      const results: Record<string, () => Json> = {
        'server/discover': () => ({ supportedVersions: [modernVersion], capabilities: { tools: {} } }),
        'tools/list': () => ({ tools: [{ name: 'ask', inputSchema: { type: 'object' } }] }),
        'tools/call'() {
          const { _meta, ...given } = params
          calls.push(given)
          return given.inputResponses === undefined
            ? { resultType: 'input_required', inputRequests: { ok: question }, requestState: state }
            : { resultType: 'complete', content: [{ type: 'text', text: 'done' }] }
        },
      }
      return Response.json({ jsonrpc: '2.0', id, result: results[method]?.() ?? {} })
    },
  })
  const { servers } = gatewayServers([storedServer({ name: 'files', url: `http://localhost:${server.port}/mcp` })])
  const gateway = await startTestGateway(() => Response.json({}), {}, undefined, servers)
  const config = { types: ['email'], action }
  gateway.worker.policies = compilePolicySet([testPolicy({ id: 'pii', kind: 'pii', stages, config })])
  stops.push(
    () => server.stop(true),
    () => gateway.stop(),
  )
  return { calls, gateway, caller: modernCaller(gateway) }
}

const both: StoredPolicy['stages'] = ['pre_request', 'pre_response']
const answers = { ok: { action: 'accept', content: { mail: 'bob@example.com' } } }

test('redacts what a server asks and what its caller answers, and no state of the server', async () => {
  const { calls, gateway, caller } = await start('redact', both)
  const { result } = await caller.call('files__ask')
  const { inputRequests, requestState } = result as { inputRequests: Json; requestState: string }
  expect(inputRequests).toEqual({ ok: { ...question, params: { ...question.params, message: 'Mail [EMAIL]?' } } })
  expect(requestState).not.toContain('ann')
  const done = await caller.call('files__ask', {}, { requestState, inputResponses: answers })
  expect(done.result).toMatchObject({ resultType: 'complete', content: [{ text: 'done' }] })
  expect(calls[1]).toEqual({
    ...{ name: 'ask', arguments: {}, requestState: state },
    inputResponses: { ok: { action: 'accept', content: { mail: '[EMAIL]' } } },
  })
  const outcomes = gateway.worker.journal.outcomes().map(({ verdict, details }) => [verdict, details?.server])
  expect(outcomes).toEqual([
    ['redact', 'files'],
    ['redact', 'files'],
  ])
})

test('sends no answer of a caller that a policy blocks', async () => {
  const { calls, caller } = await start('block', ['pre_request'])
  const { result } = await caller.call('files__ask')
  const { requestState } = result as { requestState: string }
  const refused = await caller.call('files__ask', {}, { requestState, inputResponses: answers })
  expect(refused).toMatchObject({ error: { data: { code: 'content_policy_violation' } } })
  expect(calls).toHaveLength(1)
})

test('asks a caller nothing when a policy blocks the question', async () => {
  const { caller } = await start('block', ['pre_response'])
  expect(await caller.call('files__ask')).toMatchObject({ error: { data: { code: 'content_policy_violation' } } })
})
