import { afterAll, beforeEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runCommandLine } from '../../command/command.ts'
import { recordingControlPlane } from '../../testing/control-plane.ts'
import { recordingTerminal } from '../../testing/terminal.ts'
import { mcpServerCommands } from './mcp-server.ts'

const error = (status: number, code: string, message: string) => Response.json({ error: { code, message } }, { status })
const control = recordingControlPlane(({ body }) => {
  const { calls: [call] = [], ...plain } = (body ?? {}) as { name?: string; calls?: { body: { name: string } }[] }
  const { name } = call?.body ?? plain
  if (name === 'known') return error(409, 'conflict', 'There is one')
  if (name === 'odd') return error(422, 'invalid_parameter', 'url is no address')
  return { id: 'made', name }
})
/** A placeholder as the files of clients write it. */
const hole = (inside: string) => `$\{${inside}}`
const folder = mkdtempSync(join(tmpdir(), 'mcp-import-'))
afterAll(async () => {
  rmSync(folder, { recursive: true })
  await control.stop()
})
beforeEach(() => {
  control.requests.length = 0
})

async function run(content: unknown, { environment = {}, typed = [] as string[], more = [] as string[] } = {}) {
  const path = join(folder, 'mcp.json')
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content))
  const terminal = recordingTerminal({ environment: { ...control.environment, ...environment } })
  const lines = [...typed]
  const hiddenLine = async () => lines.shift() ?? ''
  const input = { interactive: typed.length > 0, line: hiddenLine, hiddenLine }
  const running = runCommandLine(mcpServerCommands(terminal, input), ['import', path, ...more], terminal)
  const failure = await running.then(
    () => null,
    (thrown: Error) => thrown.message,
  )
  return { out: terminal.written(), notes: terminal.noted(), failure, bodies: control.requests.map(({ body }) => body) }
}

test('imports commands and addresses with their secrets, and names what has no place', async () => {
  const { out, failure, bodies } = await run({
    mcpServers: {
      files: { command: 'npx', args: ['-y', 'files', '/srv'], env: { TOKEN: 'files-secret' }, autoApprove: ['read'] },
      'my docs': {
        httpUrl: 'https://docs.example.com/mcp',
        headers: { 'X-Key': 'docs-secret' },
        disabled: true,
        cwd: '/',
      },
    },
  })
  expect(bodies).toEqual([
    {
      name: 'files',
      command: { program: 'npx', args: ['-y', 'files', '/srv'] },
      environment: { TOKEN: 'files-secret' },
    },
    { name: 'my-docs', enabled: false, url: 'https://docs.example.com/mcp', headers: { 'X-Key': 'docs-secret' } },
  ])
  expect(failure).toBeNull()
  expect(out).toBe(`+ files
    not carried over: autoApprove: what may be called is decided by policies and approvals
+ my docs
    not carried over: cwd: a record has no such field
    not carried over: its name, which is my-docs now
`)
})

test('takes placeholders from the environment, or asks for them once, without showing what is typed', async () => {
  const file = {
    inputs: [{ id: 'github token', description: 'GitHub token', password: true }],
    servers: {
      github: {
        type: 'http',
        url: 'https://gh.example.com',
        headers: { Authorization: `Bearer ${hole('input:github token')}` },
      },
      again: {
        url: 'https://gh2.example.com',
        headers: { 'X-Key': `${hole('input:github token')}`, 'X-Team': `${hole('TEAM:-red')}` },
      },
    },
  }
  const { out, notes, bodies } = await run(file, { typed: ['typed-secret', ''] })
  expect(bodies).toMatchObject([
    { headers: { Authorization: 'Bearer typed-secret' } },
    { headers: { 'X-Key': 'typed-secret' } },
  ])
  expect(notes).toContain('GitHub token:')
  expect(out + notes).not.toContain('typed-secret')
  control.requests.length = 0
  const fromEnvironment = await run(file, { environment: { GITHUB_TOKEN: 'env-secret' } })
  expect(fromEnvironment.bodies).toMatchObject([
    { headers: { Authorization: 'Bearer env-secret' } },
    { headers: { 'X-Key': 'env-secret', 'X-Team': 'red' } },
  ])
  control.requests.length = 0
  const unknown = await run(file)
  expect(unknown.bodies).toEqual([])
  expect(unknown.out).toContain(`! github: it needs ${hole('input:github token')}: set the variable GITHUB_TOKEN`)
  expect(unknown.failure).toBe('2 of 2 servers were not imported')
})

test('refuses a server that would keep a secret readable, or that cannot be reached, and imports the others', async () => {
  const { out, failure, bodies } = await run({
    inputs: [{ id: 'key', password: true }],
    mcpServers: {
      typed: { command: 'stripe', args: [hole('input:key')] },
      flag: { command: 'stripe', args: ['--api-key=sk-secret'] },
      next: { command: 'stripe', args: ['--api-key', 'sk-secret'] },
      database: { command: 'pg', args: ['postgresql://user:pg-secret@host/db'] },
      query: { url: 'https://mcp.example.com/mcp?apiKey=query-secret' },
      old: { type: 'sse', url: 'https://old.example.com/sse' },
      inside: { command: 'x', args: [`${hole('workspaceFolder')}`] },
      broken: { command: 5 },
      known: { url: 'https://known.example.com' },
      odd: { url: 'odd' },
      fine: { serverUrl: 'https://fine.example.com/mcp' },
    },
  })
  expect(bodies.map((body) => (body as { name: string }).name)).toEqual(['known', 'odd', 'fine'])
  expect(out).not.toContain('-secret')
  expect(out.match(/^! .*/gm)).toHaveLength(9)
  expect(out).toContain('! old: its transport is SSE')
  expect(out).toContain('= known: there is a server of this name')
  expect(out).toContain('! odd: url is no address')
  expect(out).toContain('+ fine')
  expect(failure).toBe('9 of 11 servers were not imported')
})

test('a dry run says what would be done by the same checks, and does nothing', async () => {
  const file = {
    mcpServers: {
      a: { url: 'https://a.example.com' },
      known: { url: 'https://known.example.com' },
      odd: { url: 'odd' },
      held: { url: 'https://held.example.com', headers: { 'X-Key': hole('HELD_KEY') } },
      'two words': { command: 'one' },
      'two-words': { command: 'other' },
    },
  }
  const lines = [
    ...['+ a', '= known: there is a server of this name', '! odd: url is no address'],
    `! held: it needs ${hole('HELD_KEY')}: set the variable HELD_KEY`,
    ...['+ two words', '    not carried over: its name, which is two-words now'],
    '= two-words: there is a server of this name',
  ]
  const { out, failure } = await run(file, { more: ['--dry-run'] })
  expect([out, failure]).toEqual([`${lines.join('\n')}\n`, '2 of 6 servers would not be imported'])
  expect(control.requests.map(({ target, body }) => [target, body])).toMatchObject(
    Array.from({ length: 4 }, () => ['/v1/together', { dry_run: true }]),
  )
  // Where a person could be asked, what is missing is no fault yet.
  expect((await run(file, { more: ['--dry-run'], typed: ['unasked'] })).out).toContain('+ held')
})

test('reads comments and commas at the end, and refuses a file that is none', async () => {
  expect((await run('{ "mcpServers": { "a": { "url": "https://a.example.com", }, } } // note')).out).toBe('+ a\n')
  expect((await run('{ "mcpServers": ')).failure).toBe('The file is not valid JSON')
  expect((await run('{"a": 1}')).failure).toContain('names no MCP servers')
})
