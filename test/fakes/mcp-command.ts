/** An MCP server on pipes, run as a program. Its first argument says what it does. */
import { argv, env, pid } from 'node:process'

const [behaviour = ''] = argv.slice(2)
const write = (message: unknown) => process.stdout.write(`${JSON.stringify(message)}\n`)
process.stderr.write('started\n')
if (behaviour === 'stubborn') process.on('SIGTERM', () => undefined)

for await (const line of console) {
  if (line === '') break
  const { id, method, params } = JSON.parse(line)
  if (id === undefined) continue
  if (method === 'initialize') {
    process.stdout.write('a line that is no message\n')
    const capabilities = behaviour === 'tools' ? { tools: {} } : {}
    write({ jsonrpc: '2.0', id, result: { protocolVersion: params.protocolVersion, capabilities } })
  } else if (method === 'server/discover' && behaviour !== 'dies') {
    write({ jsonrpc: '2.0', id, error: { code: -32_601, message: 'Method not found' } })
  } else if (behaviour === 'tools' && method === 'tools/list') {
    write({ jsonrpc: '2.0', id, result: { tools: [{ name: 'where', inputSchema: { type: 'object' } }] } })
  } else if (behaviour === 'tools') {
    const text = JSON.stringify({ environment: env, pid })
    write({ jsonrpc: '2.0', id, result: { content: [{ type: 'text', text }] } })
  } else if (behaviour === 'deep') {
    const deep = `${'['.repeat(50_000)}${']'.repeat(50_000)}`
    process.stdout.write(`{"jsonrpc":"2.0","method":"notifications/message","params":{"data":${deep}}}\n`)
    if (params.name === 'deep') process.stdout.write(`{"jsonrpc":"2.0","id":${id},"result":{"content":${deep}}}\n`)
    else write({ jsonrpc: '2.0', id, result: {} })
  } else if (behaviour === 'talkative') {
    process.stderr.write(`${env.API_KEY} ${params.arguments.theirs}\n`, () => write({ jsonrpc: '2.0', id, result: {} }))
  } else if (behaviour === 'dies') process.exit(3)
  else if (behaviour === 'huge') process.stdout.write('x'.repeat(100_000))
  else write({ jsonrpc: '2.0', id, result: { environment: env, pid } })
}

if (behaviour === 'stubborn') await Bun.sleep(60_000)
