/** Local MCP servers as children of the gateway, and the official server with all that the protocol has, both ways. */
import { afterEach, expect, test } from 'bun:test'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { until } from '../../../test/support/eventually.ts'
import { freePort } from '../../../test/support/free-port.ts'
import { type Log, silentLog } from '../../lib/log/log.ts'
import type { McpServerRecord } from '../connection.ts'
import { gatewayServers, storedServer, TestCaller } from '../testing/servers.ts'
import type { ServerConnection } from './server-connection.ts'
import type { StoredMcpServer } from './server-source.ts'

const program = join(import.meta.dir, '../../../test/fakes/mcp-command.ts')
const everything = join(import.meta.dir, '../../../node_modules/@modelcontextprotocol/server-everything/dist/index.js')
const allowed = { mcp_local_commands: 'allowed', mcp_children: 1, mcp_result_bytes: 50_000 }

let close: () => Promise<void> = async () => undefined
afterEach(() => close())

const commandOf = (...args: string[]) => JSON.stringify({ program: process.execPath, args })

function gateway(
  fields: Partial<StoredMcpServer>,
  settings: object = allowed,
  environment: Record<string, string> = {},
) {
  const lines: object[] = []
  const keep = (line: object) => void lines.push(line)
  const log: Log = { ...silentLog, error: keep, warn: keep, info: keep, debug: keep }
  const { servers } = gatewayServers([storedServer(fields, { environment })], { ...settings }, { log })
  close = () => servers.close()
  const [record] = servers.list()
  if (record === undefined) throw new Error('There is no server')
  const connect = (caller = new TestCaller()) => servers.connect(record satisfies McpServerRecord, caller)
  return { record, servers, connect, lines }
}

const call = (connection: ServerConnection, method = 'tools/call', params = {}) =>
  connection.request(method, params, { signal: AbortSignal.timeout(10_000) })

const runs = (pid: unknown): boolean => {
  try {
    return process.kill(Number(pid), 0)
  } catch {
    return false
  }
}

test('starts a command only where the installation allows it', async () => {
  const { connect } = gateway({ command: commandOf(program) }, {})
  await expect(connect()).rejects.toMatchObject({ code: 'mcp.commands_refused' })
})

test('starts one child process per session with the environment of its record, and ends it with the session', async () => {
  const { connect } = gateway({ command: commandOf(program) }, allowed, { API_KEY: 'secret' })
  const connection = await connect()
  const { environment, pid } = await call(connection)
  expect(environment).toEqual({ PATH: process.env.PATH, API_KEY: 'secret' })
  expect(runs(pid)).toBe(true)
  await expect(connect()).rejects.toMatchObject({ code: 'mcp.too_many_children' })
  await connection.close()
  expect(runs(pid)).toBe(false)
  const next = await connect()
  expect((await call(next)).pid).not.toBe(pid)
})

test('logs only the length of a child’s standard error, at any level', async () => {
  const environment = { API_KEY: 'a key of theirs' }
  const { connect, lines } = gateway({ command: commandOf(program, 'talkative') }, allowed, environment)
  const connection = await connect()
  await call(connection, 'tools/call', { name: 'a', arguments: { theirs: 'gth_of a caller' } })
  await connection.close()
  await until('the line', () => lines.length > 0)
  const complaint = `started\n${environment.API_KEY} gth_of a caller\n`
  expect(lines).toEqual([{ mcp_server: 'one', bytes: complaint.length }])
})

test('speaks 2026-07-28 with a command of that version, which asks a caller with a session by its results', async () => {
  const modern = join(import.meta.dir, '../../../test/fakes/modern-mcp-command.ts')
  const { connect } = gateway({ command: commandOf(modern) })
  const caller = new TestCaller({ elicitation: {} })
  caller.answer = () => ({ action: 'accept', content: { city: 'Turin' } })
  const connection = await connect(caller)
  expect(connection.modern).toBe(true)
  const progress: unknown[] = []
  const options = { signal: AbortSignal.timeout(10_000), onProgress: (told: object) => void progress.push(told) }
  expect(await connection.request('tools/call', { name: 'city', arguments: {} }, options)).toMatchObject({
    content: [{ type: 'text', text: '{"city":"Turin"}' }],
  })
  expect(progress).toMatchObject([{ progress: 1 }, { progress: 1 }])
})

test('kills a child that does not exit', async () => {
  const { connect } = gateway({ command: commandOf(program, 'stubborn') })
  const connection = await connect()
  const { pid } = await call(connection)
  await connection.close()
  expect(runs(pid)).toBe(false)
})

test('waits at gateway shutdown for children of sessions that just ended', async () => {
  const { connect, servers } = gateway({ command: commandOf(program, 'stubborn') })
  const connection = await connect()
  const { pid } = await call(connection)
  void connection.close()
  await servers.close()
  expect(runs(pid)).toBe(false)
})

test('ends children at gateway shutdown that have not answered yet', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-mcp-'))
  const file = join(directory, 'pid')
  const args = ['-c', `echo $$ >'${file}'; exec sleep 60`]
  const { connect, servers } = gateway({ command: JSON.stringify({ program: '/bin/sh', args }) })
  const opening = connect()
  // It is ended before it is open.
  opening.catch(() => undefined)
  const pid = async () => Number(await Bun.file(file).text())
  await until('the child', async () => existsSync(file) && (await pid()) > 0)
  await servers.close()
  expect(runs(await pid())).toBe(false)
  rmSync(directory, { recursive: true })
  await expect(opening).rejects.toMatchObject({ code: 'mcp.server_unreachable' })
})

test('fails running requests when a child dies and starts it again for the next', async () => {
  const { connect } = gateway({ command: commandOf(program, 'dies') })
  const connection = await connect()
  await expect(call(connection)).rejects.toMatchObject({ code: 'mcp.server_unreachable' })
  await expect(call(connection)).rejects.toMatchObject({ code: 'mcp.server_unreachable' })
})

test('discards a line without end', async () => {
  const { connect } = gateway({ command: commandOf(program, 'huge') })
  const connection = await connect()
  await expect(call(connection)).rejects.toMatchObject({ code: 'mcp.result_too_large' })
})

test('answers a message nested too deep with an error for its request only', async () => {
  const { connect, servers } = gateway({ command: commandOf(program, 'deep') }, { ...allowed, mcp_result_bytes: 1e6 })
  const caller = new TestCaller()
  const connection = await connect(caller)
  await expect(call(connection, 'tools/call', { name: 'deep' })).rejects.toMatchObject({ code: 'mcp.server_error' })
  expect(await call(connection, 'tools/call', { name: 'shallow' })).toEqual({})
  expect(caller.told).toEqual([])
  expect(servers.unsolicited).toBe(2)
})

test('reports a program that does not exist', async () => {
  const { connect } = gateway({ command: JSON.stringify({ program: '/no/such/program', args: [] }) })
  await expect(connect()).rejects.toMatchObject({ code: 'mcp.server_unreachable' })
  await expect(connect()).rejects.toMatchObject({ code: 'mcp.server_unreachable' })
})

const names = (result: Record<string, unknown>): string[] =>
  Array.isArray(result.tools) ? result.tools.map(({ name }) => name) : []

async function useEverything(connection: ServerConnection, caller: TestCaller) {
  expect(connection.capabilities).toMatchObject({ tools: {}, prompts: {}, resources: {} })
  expect(names(await call(connection, 'tools/list'))).toContain('echo')
  const echoed = await call(connection, 'tools/call', { name: 'echo', arguments: { message: 'hello' } })
  expect(echoed).toEqual({ content: [{ type: 'text', text: 'Echo: hello' }] })
  await expect(call(connection, 'prompts/get', { name: 'none' })).rejects.toMatchObject({ code: -32602 })
  caller.answer = () => ({ role: 'assistant', model: 'm', content: { type: 'text', text: 'sampled here' } })
  const sampled = await call(connection, 'tools/call', {
    name: 'trigger-sampling-request',
    arguments: { prompt: 'a', maxTokens: 5 },
  })
  expect(JSON.stringify(sampled)).toContain('sampled here')
  const progress: unknown[] = []
  await connection.request(
    'tools/call',
    { name: 'trigger-long-running-operation', arguments: { duration: 0.2, steps: 2 } },
    { signal: AbortSignal.timeout(10_000), onProgress: (told) => progress.push(told) },
  )
  expect(progress.length).toBeGreaterThan(0)
}

test('uses the official server over stdio', async () => {
  const { connect } = gateway({ command: commandOf(everything, 'stdio') }, { mcp_local_commands: 'allowed' })
  const caller = new TestCaller({ sampling: {} })
  await useEverything(await connect(caller), caller)
})

test('uses the official server over HTTP', async () => {
  const port = await freePort()
  const child = Bun.spawn([process.execPath, everything, 'streamableHttp'], {
    env: { PATH: dirname(process.execPath), PORT: String(port) },
    stdout: 'ignore',
    stderr: 'ignore',
  })
  try {
    const url = `http://127.0.0.1:${port}/mcp`
    await until('the server', async () => (await fetch(url).catch(() => null)) !== null)
    const { connect } = gateway({ url })
    const caller = new TestCaller({ sampling: {} }, '2025-06-18')
    await useEverything(await connect(caller), caller)
  } finally {
    child.kill()
    await child.exited
  }
})
