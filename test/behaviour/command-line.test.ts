import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { copyFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { tokenPage } from '../support/answers.ts'
import { executable } from '../support/executable.ts'
import { type Gatehouse, operate, run, startGatehouse, temporaryDirectory } from '../support/harness.ts'

setDefaultTimeout(120_000)

let gatehouse: Gatehouse

beforeAll(async () => {
  gatehouse = await startGatehouse()
}, 240_000)
afterAll(() => gatehouse?.stop())

test('--version prints the version on standard output', async () => {
  const ran = await run(['version'])
  expect(ran.code).toBe(0)
  expect(ran.stdout).toContain('0.2.0')
  expect(ran.stderr).toBe('')
})

test('help lists the commands, exits 0 and uses the name of the executable', async () => {
  const directory = temporaryDirectory()
  try {
    const renamed = join(directory, 'warden')
    copyFileSync(await executable(), renamed)
    const ran = await run(['--help'], { executablePath: renamed })
    expect(ran.code).toBe(0)
    for (const word of ['up', 'control-plane', 'gateway', 'token', 'events', 'version', 'warden']) {
      expect(ran.stdout).toContain(word)
    }
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
})

test('a mistyped command or flag exits 2, names the mistake on standard error and prints nothing on standard output', async () => {
  const mistakes: [string[], string][] = [
    [['nonsense'], 'nonsense'],
    [['--nonsense'], '--nonsense'],
    [['token', 'nonsense'], 'nonsense'],
    [['token', 'list', '--jsn'], '--jsn'],
    [['token', 'list', 'surplus'], 'argument'],
    [['token', 'get'], 'positional argument: ID'],
    [['token', 'create'], '--name'],
    [['token', 'create', '--name', 'x', '--purpose', 'everything'], 'gateway-runtime'],
    [['token', 'create', '--name', 'x', '--purpose', 'general', '--expires-in', 'soon'], '--expires-in'],
    [['token', 'list', '--purpose'], '--purpose'],
    [['events', 'tail', '--since', '5m', '--limit', 'many'], '--limit'],
    [['up', '--gateway-listen', 'nowhere'], '--gateway-listen'],
    [['up', '--gateway-port', '1'], '--gateway-port'],
    [['up', 'surplus'], 'argument'],
    [['version', '--loud'], '--loud'],
  ]
  const got = await Promise.all(
    mistakes.map(async ([args, named]) => {
      const { code, stdout, stderr } = await operate(gatehouse, ...args)
      return { args, code, stdout, named: stderr.includes(named) ? named : stderr }
    }),
  )
  expect(got).toEqual(mistakes.map(([args, named]) => ({ args, code: 2, stdout: '', named })))
})

test('--api-token is rejected before parsing, and its value is not repeated', async () => {
  const secret = 'gth_written-on-the-command-line'
  const lines = [
    ['--api-token', secret, 'token', 'list'],
    ['token', 'list', '--api-token', secret],
    ['token', 'list', `--api-token=${secret}`],
    ['nonsense', '--api-token', secret],
    ['up', '--api-token', secret],
  ]
  for (const args of lines) {
    const ran = await operate(gatehouse, ...args)
    expect([args, ran.code, ran.stdout]).toEqual([args, 2, ''])
    expect(ran.stderr).toContain('--api-token')
    expect(ran.stderr).toContain('SERVICE_API_TOKEN')
    expect(ran.stderr).not.toContain(secret)
  }
})

test('a refusal by the control plane exits 1 with a message on standard error and no stack', async () => {
  const env = { SERVICE_API_URL: gatehouse.baseUrl, SERVICE_API_TOKEN: 'gth_wrong' }
  const ran = await run(['token', 'list'], { env })
  expect([ran.code, ran.stdout]).toEqual([1, ''])
  expect(ran.stderr).toContain('invalid_api_token')
  expect(ran.stderr).not.toContain('gth_wrong')
  expect(ran.stderr).not.toMatch(/\n\s+at /)
})

test('a missing credential names the variable to set', async () => {
  const ran = await run(['token', 'list'], { env: { SERVICE_API_URL: gatehouse.baseUrl } })
  expect([ran.code, ran.stdout]).toEqual([1, ''])
  expect(ran.stderr).toContain('SERVICE_API_TOKEN')
})

test('an unreachable control plane is named', async () => {
  const env = { SERVICE_API_URL: 'http://127.0.0.1:1', SERVICE_API_TOKEN: gatehouse.adminToken }
  const ran = await run(['token', 'list'], { env })
  expect([ran.code, ran.stdout]).toEqual([1, ''])
  expect(ran.stderr).toContain('http://127.0.0.1:1')
})

test('--json prints only the answer', async () => {
  const ran = await operate(gatehouse, 'token', 'list', '--json')
  expect([ran.code, ran.stderr]).toEqual([0, ''])
  expect(tokenPage.parse(JSON.parse(ran.stdout)).tokens.length).toBeGreaterThan(0)
})

test('a list for people shows the tokens, without escape codes when there is no terminal', async () => {
  const ran = await operate(gatehouse, 'token', 'list')
  expect(ran.code).toBe(0)
  expect(ran.stdout).toContain(gatehouse.adminToken.slice(0, 12))
  expect(ran.stdout).not.toContain('\u001b')
})

test('--api-url wins over the environment', async () => {
  const env = { SERVICE_API_URL: 'http://127.0.0.1:1', SERVICE_API_TOKEN: gatehouse.adminToken }
  const ran = await run(['token', 'list', '--json', '--api-url', gatehouse.baseUrl], { env })
  expect([ran.code, ran.stderr]).toEqual([0, ''])
})

test('config explain shows each setting with its source and no secret', async () => {
  const env = { SERVICE_DRAIN_SECONDS: '7', SERVICE_API_TOKEN: 'gth_a-secret-setting' }
  const ran = await run(['config', 'explain'], { env })
  expect(ran.code).toBe(0)
  expect(ran.stdout).toMatch(/drain_seconds\b.*\b7\b.*environment/i)
  expect(ran.stdout).toMatch(/gateway_listen\b.*127\.0\.0\.1:7080.*default/i)
  expect(ran.stdout + ran.stderr).not.toContain('gth_a-secret-setting')
})

test('an unknown setting is an error', async () => {
  const directory = temporaryDirectory()
  try {
    const file = join(directory, 'settings.yaml')
    await Bun.write(file, 'drain_seconds: 5\ndrain_minutes: 1\n')
    const ran = await run(['config', 'explain', '--config', file])
    expect(ran.code).not.toBe(0)
    expect(ran.stderr).toContain('drain_minutes')
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
})
