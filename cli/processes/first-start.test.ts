import { afterAll, beforeEach, expect, test } from 'bun:test'
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { settingsSchema } from '../../src/config.ts'
import { recordingTerminal } from '../testing/terminal.ts'
import type { ControlPlaneReady } from './child-message.ts'
import { announce } from './first-start.ts'

const root = mkdtempSync(join(tmpdir(), "gatehouse's first start-"))
afterAll(() => rmSync(root, { recursive: true, force: true }))

let data = root
beforeEach(() => {
  data = mkdtempSync(join(root, 'data-'))
})

const plane = (more: Partial<ControlPlaneReady> = {}): ControlPlaneReady => ({
  ready: 'control-plane',
  base_url: 'http://127.0.0.1:7070',
  state_file: '/data/state.db',
  runtime_token: 'gth_runtime',
  admin_token: 'gth_admin',
  setup_url: null,
  ...more,
})

async function say(
  args: { json?: boolean; 'admin-token-file'?: string },
  { interactive = false, ready = plane() } = {},
): Promise<string> {
  const terminal = recordingTerminal({ interactive })
  const settings = settingsSchema.parse({ data })
  await announce({ settings, plane: ready, gatewayUrl: 'http://127.0.0.1:7080', args, terminal })
  return terminal.written()
}

test('shows a person the token and a request that works as pasted', async () => {
  const text = await say({}, { interactive: true })
  expect(text).toContain('  gth_admin\n')
  expect(text).toContain('curl http://127.0.0.1:7080/v1/chat/completions -H "Authorization: Bearer gth_admin"')
  expect(existsSync(join(data, 'admin-token'))).toBe(false)
})

test('without a terminal, writes the token to a file that only its owner can read', async () => {
  const text = await say({})
  const path = join(data, 'admin-token')
  expect(text).not.toContain('gth_admin')
  expect(text).toContain(path)
  expect(readFileSync(path, 'utf8')).toBe('gth_admin\n')
  expect(statSync(path).mode & 0o777).toBe(0o600)
})

test('prints a request that reads the token from its file, for any path', async () => {
  const text = await say({})
  const line = text.split('\n').find((candidate) => candidate.startsWith('  curl '))
  const shell = Bun.spawn(['sh', '-c', `curl() { printf '%s\\n' "$@"; }; ${line}`], { stdout: 'pipe' })
  const words = (await new Response(shell.stdout).text()).split('\n')
  expect(words).toContain('Authorization: Bearer gth_admin')
  expect(JSON.parse(words.at(-2) ?? '')).toMatchObject({ model: 'simulator/echo' })
})

test('prints one line of JSON, with the token on the first start only', async () => {
  const text = await say({ json: true })
  expect(text.trimEnd()).not.toContain('\n')
  expect(JSON.parse(text)).toEqual({
    ready: true,
    base_url: 'http://127.0.0.1:7070',
    gateway_url: 'http://127.0.0.1:7080',
    console_url: 'http://127.0.0.1:7070/console',
    admin_token: 'gth_admin',
  })
  const later = JSON.parse(await say({ json: true }, { ready: plane({ admin_token: null }) }))
  expect(Object.keys(later)).toEqual(['ready', 'base_url', 'gateway_url', 'console_url'])
})

test('with --admin-token-file, writes the token to the file and nowhere else', async () => {
  const path = join(data, 'elsewhere')
  const text = await say({ json: true, 'admin-token-file': path }, { interactive: true })
  expect(JSON.parse(text).admin_token_file).toBe(path)
  expect(text).not.toContain('gth_admin')
  expect(readFileSync(path, 'utf8')).toBe('gth_admin\n')
})

test('while no owner has a password, each start gives a link that sets one: on the terminal, as JSON or in a file', async () => {
  const url = 'http://127.0.0.1:7070/console/setup#gthc_link'
  const ready = plane({ admin_token: null, setup_url: url })
  const shown = await say({}, { interactive: true, ready })
  expect(shown).toContain(`  ${url}\n`)
  expect(shown).toContain('gatehouse auth setup-link')
  expect(shown).not.toContain('administrator token')
  expect(JSON.parse(await say({ json: true }, { ready })).setup_url).toBe(url)
  const path = join(data, 'setup-link')
  const logged = await say({}, { ready })
  expect(logged).toContain(path)
  expect(logged).not.toContain('gthc_link')
  expect([readFileSync(path, 'utf8'), statSync(path).mode & 0o777]).toEqual([`${url}\n`, 0o600])
})

test('never shows the runtime token', async () => {
  for (const json of [true, false]) expect(await say({ json }, { interactive: true })).not.toContain('gth_runtime')
})
