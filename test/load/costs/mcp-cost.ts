/**
 * What the gateway adds to a tool call, as a ratio to the same call of the same server without it, in one run: blocks
 * of calls take turns, so that both meet the same machine. Every call is admitted, counted and recorded. `bun
 * test/load/costs/mcp-cost.ts [calls in a block]`
 */
import { z } from 'zod'
import { api, createToken } from '../../support/client.ts'
import { until } from '../../support/eventually.ts'
import { startGatehouse } from '../../support/harness.ts'

const messageSchema = z.object({
  id: z.union([z.string(), z.number()]).optional(),
  method: z.string(),
  params: z.looseObject({}).optional(),
})
const [first = '500'] = process.argv.slice(2)
if (first === 'serve') await serve()

/** The least that an MCP server can be, as a process of its own. */
async function serve(): Promise<never> {
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      if (request.method !== 'POST') return new Response(null, { status: 405 })
      const { id, method, params } = messageSchema.parse(await request.json())
      if (id === undefined) return new Response(null, { status: 202 })
      const results: Record<string, object> = {
        initialize: { protocolVersion: '2025-11-25', capabilities: { tools: {} } },
        'tools/list': { tools: [{ name: 'echo', inputSchema: { type: 'object' } }] },
        'tools/call': { content: [{ type: 'text', text: JSON.stringify(params?.arguments) }] },
      }
      return Response.json({ jsonrpc: '2.0', id, result: results[method] ?? {} })
    },
  })
  console.log(`http://127.0.0.1:${server.port}/mcp`)
  return await new Promise<never>(() => undefined)
}

const block = Number(first)
const blocks = 8
const server = Bun.spawn([process.execPath, import.meta.path, 'serve'], { stdout: 'pipe' })
const { value } = await server.stdout.getReader().read()
const direct = { url: new TextDecoder().decode(value).trim(), name: 'echo', headers: {} }

await using gatehouse = await startGatehouse()
await api(gatehouse, '/v1/catalog/mcp-servers', { body: { name: 'least', url: direct.url } })
const { token_value: token } = await createToken(gatehouse)
const through = {
  url: `${gatehouse.gatewayUrl}/mcp`,
  name: 'least__echo',
  headers: { authorization: `Bearer ${token}`, 'mcp-session-id': '' },
}

let count = 0
function send({ url, headers }: typeof direct, method: string, params: object): Promise<Response> {
  return fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers },
    body: JSON.stringify({ jsonrpc: '2.0', id: ++count, method, params }),
  })
}

/** Milliseconds. */
async function call(target: typeof direct): Promise<number> {
  const from = performance.now()
  const answer = await send(target, 'tools/call', { name: target.name, arguments: { text: 'x'.repeat(500) } })
  const text = await answer.text()
  if (!text.includes('"result"') || text.includes('"isError"')) throw new Error(text)
  return performance.now() - from
}

const begun = await send(through, 'initialize', { protocolVersion: '2025-11-25', capabilities: {} })
through.headers['mcp-session-id'] = begun.headers.get('mcp-session-id') ?? ''
await begun.text()
await until('the gateway knows the server', () => call(through).then(Boolean, () => false))

const percentile = (times: readonly number[], part: number): number =>
  times.toSorted((one, other) => one - other)[Math.floor(part * (times.length - 1))] ?? 0

for (const atOnce of [1, 16]) {
  const times = { direct: [] as number[], through: [] as number[] }
  for (let round = 0; round < blocks; round++) {
    for (const [name, target] of [
      ['direct', direct],
      ['through', through],
    ] as const) {
      for (let done = 0; done < block; done += atOnce) {
        times[name].push(...(await Promise.all(Array.from({ length: atOnce }, () => call(target)))))
      }
    }
  }
  const shown = [0.5, 0.99].map((part) => {
    const [one, other] = [percentile(times.direct, part), percentile(times.through, part)]
    return `p${100 * part}: ${one.toFixed(2)} ms direct, ${other.toFixed(2)} ms through, ${(other / one).toFixed(2)} x`
  })
  console.log(`${atOnce} at once, ${times.direct.length} calls each: ${shown.join('; ')}`)
}
server.kill()
