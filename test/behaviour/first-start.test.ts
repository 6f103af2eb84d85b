import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { tokenPage } from '../support/answers.ts'
import { api, chat, expectAnswer, parseOrKeep } from '../support/client.ts'
import { eventually, until } from '../support/eventually.ts'
import { executable } from '../support/executable.ts'
import {
  cleanEnvironment,
  collect,
  type Gatehouse,
  run,
  startGatehouse,
  temporaryDirectory,
} from '../support/harness.ts'
import { descendantsOf, isAlive, signal } from '../support/processes.ts'

setDefaultTimeout(120_000)

const providerPage = z.looseObject({ providers: z.array(z.looseObject({ id: z.string(), name: z.string() })) })

let gatehouse: Gatehouse

beforeAll(async () => {
  gatehouse = await startGatehouse()
}, 240_000)
afterAll(() => gatehouse?.stop())

test('the first start creates a working administrator token and prints it once', async () => {
  expect(gatehouse.adminToken).toMatch(/^gth_[0-9A-Za-z]{36}$/)
  const page = expectAnswer(await api(gatehouse, '/v1/tokens'), 200, tokenPage)
  const administrator = page.tokens.find(({ token_prefix }) => gatehouse.adminToken.startsWith(token_prefix))
  expect(administrator?.roles).toEqual(['owner'])
  expect(gatehouse.stdout().split(gatehouse.adminToken).length).toBe(2)
})

test('the ready line names three addresses on the free ports', () => {
  const { base_url, gateway_url, console_url } = gatehouse.ready
  expect(new URL(base_url).port).not.toBe('0')
  expect(new URL(gateway_url).port).not.toBe('0')
  expect(base_url).not.toBe(gateway_url)
  expect(console_url).toBe(`${base_url}/console`)
})

test('only the owner can read the data directory and its files', () => {
  expect(statSync(gatehouse.dataDirectory).mode & 0o777).toBe(0o700)
  const open = readdirSync(gatehouse.dataDirectory, { recursive: true })
    .map((name) => join(gatehouse.dataDirectory, String(name)))
    .filter((path) => (statSync(path, { throwIfNoEntry: false })?.mode ?? 0) & 0o077)
    .filter((path) => statSync(path).isFile())
    // SQLite gives -wal and -shm the mode of the database file.
    .map((path) => `${path} ${(statSync(path).mode & 0o777).toString(8)}`)
  expect(open).toEqual([])
})

test('the simulator answers without a provider key or network', async () => {
  const answer = await chat(gatehouse, {
    token: gatehouse.adminToken,
    model: 'simulator/echo',
    text: 'Is anyone there?',
  })
  expect(answer.status).toBe(200)
  expect(await answer.text()).toContain('Is anyone there?')
})

test('both listeners report liveness, readiness and version', async () => {
  for (const url of [gatehouse.baseUrl, gatehouse.gatewayUrl]) {
    const health = await fetch(`${url}/healthz`)
    expect([url, health.status]).toEqual([url, 200])
    expect(await health.text()).toContain('0.2.0')
    expect([url, (await fetch(`${url}/readyz`)).status]).toEqual([url, 200])
    const metrics = await fetch(`${url}/metrics`)
    expect([url, metrics.status]).toEqual([url, 200])
    expect(await metrics.text()).toMatch(/^# TYPE /m)
  }
})

test('a first start killed before it printed its token leaves the token to the next start', async () => {
  const directory = temporaryDirectory()
  const data = join(directory, 'data')
  try {
    const listen = ['--control-plane-listen', '127.0.0.1:0', '--gateway-listen', '127.0.0.1:0']
    const killed = Bun.spawn([await executable(), 'up', '--json', '--data', data, ...listen], {
      env: cleanEnvironment(),
      stdout: 'pipe',
      stderr: 'ignore',
    })
    await until('there is something to lose', () => existsSync(join(data, 'ledger.db')))
    const family = [killed.pid, ...descendantsOf(killed.pid)]
    for (const pid of family) signal(pid, 'SIGKILL')
    expect(await new Response(killed.stdout).text()).toBe('')
    await until('all are gone', () => !family.some(isAlive))
    await using next = await startGatehouse({ dataDirectory: data })
    expect((await api(next, '/v1/tokens')).status).toBe(200)
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
})

test('a second start keeps existing records and prints no token but a new setup link', async () => {
  const directory = temporaryDirectory()
  try {
    const first = await startGatehouse({ dataDirectory: join(directory, 'data') })
    const { providers } = expectAnswer(await api(first, '/v1/catalog/providers'), 200, providerPage)
    const renamed = { method: 'PATCH', body: { name: 'practice' } }
    expectAnswer(await api(first, `/v1/catalog/providers/${providers[0]?.id}`, renamed), 200, z.looseObject({}))
    expect(await first.end('SIGTERM')).toBe(0)
    await first.stop()
    await using second = await startGatehouse({ dataDirectory: join(directory, 'data'), adminToken: first.adminToken })
    expect(second.ready.admin_token ?? null).toBeNull()
    expect(second.ready.setup_url).toContain('/console/setup#gthc_')
    const after = expectAnswer(await api(second, '/v1/catalog/providers'), 200, providerPage)
    expect(after.providers.map(({ name }) => name)).toEqual(['practice'])
    expect((await chat(second, { token: first.adminToken, model: 'simulator/echo' })).status).toBe(200)
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
})

test('--admin-token-file writes the token to a file readable by its owner instead of the ready line', async () => {
  const directory = temporaryDirectory()
  try {
    const file = join(directory, 'token')
    await using started = await startGatehouse({ flags: ['--admin-token-file', file] })
    const token = readFileSync(file, 'utf8').trim()
    expect(started.ready.admin_token ?? null).toBeNull()
    expect(started.stdout() + started.stderr()).not.toContain(token)
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect((await api(started, '/v1/tokens', { token })).status).toBe(200)
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
})

test('without a terminal the token goes to a file, and the printed curl line works as pasted', async () => {
  const directory = temporaryDirectory()
  const data = join(directory, 'data')
  const flags = ['--data', data, '--control-plane-listen', '127.0.0.1:0', '--gateway-listen', '127.0.0.1:0']
  const up = Bun.spawn([await executable(), 'up', ...flags], {
    cwd: directory,
    env: cleanEnvironment(),
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [stdout, stderr] = [collect(up.stdout), collect(up.stderr)]
  try {
    const command = await eventually(() => {
      const found = /curl (?:.*\\\n)*.*/.exec(`${stdout()}\n${stderr()}`)?.[0]
      if (found && existsSync(join(data, 'admin-token'))) return found
      throw new Error(`No curl line or no admin-token file:\n${stdout()}\n${stderr()}`)
    })
    const token = readFileSync(join(data, 'admin-token'), 'utf8').trim()
    expect(statSync(join(data, 'admin-token')).mode & 0o777).toBe(0o600)
    expect(stdout() + stderr()).not.toContain(token)
    const pasted = Bun.spawn(['sh', '-c', command], { cwd: directory, stdout: 'pipe', stderr: 'ignore' })
    expect(parseOrKeep(await new Response(pasted.stdout).text())).toMatchObject({ object: 'chat.completion' })
    const apiUrl = /control plane +(http:\S+)/.exec(stdout())?.[1] ?? ''
    const made = await run(['auth', 'setup-link', '--data', data, '--api-url', apiUrl])
    expect(made).toMatchObject({ code: 0, stdout: expect.stringMatching(/\/console\/setup#gthc_\w+\n$/) })
    expect(stdout() + stderr()).not.toContain('gthc_')
  } finally {
    const family = [up.pid, ...descendantsOf(up.pid)]
    for (const pid of family) signal(pid, 'SIGKILL')
    await until('up has ended', () => !family.some(isAlive))
    rmSync(directory, { recursive: true, force: true })
  }
})

test('on a terminal the start prints plain text, and Ctrl-C stops it', async () => {
  const directory = temporaryDirectory()
  const listen = ['--control-plane-listen', '127.0.0.1:0', '--gateway-listen', '127.0.0.1:0']
  let shown = ''
  const up = Bun.spawn([await executable(), 'up', '--data', join(directory, 'data'), ...listen], {
    cwd: directory,
    env: cleanEnvironment(),
    terminal: {
      cols: 200,
      data(_, bytes) {
        shown += Buffer.from(bytes).toString()
      },
    },
  })
  try {
    await until('it is ready and has logged', () => /first governed request/.test(shown) && /heads of all/.test(shown))
    up.terminal?.write('\u0003')
    expect(await up.exited).toBe(0)
    expect(shown).toContain('The administrator token, shown only now:')
    expect(shown.split('\n').filter((line) => line.startsWith('{'))).toEqual([])
    expect(shown).toMatch(/\d\d:\d\d:\d\d info control-plane: /)
  } finally {
    for (const pid of [up.pid, ...descendantsOf(up.pid)]) signal(pid, 'SIGKILL')
    rmSync(directory, { recursive: true, force: true })
  }
})

test('a second up on a directory in use is refused with the name of the directory', async () => {
  const ran = await run(['up', '--data', gatehouse.dataDirectory, '--control-plane-listen', '127.0.0.1:0'])
  expect(ran.code).toBe(1)
  expect(ran.stderr).toContain(gatehouse.dataDirectory)
  expect(ran.stdout).toBe('')
  expect((await fetch(`${gatehouse.baseUrl}/healthz`)).status).toBe(200)
})

test('a port in use is named, and no process stays', async () => {
  const directory = temporaryDirectory()
  const taken = new URL(gatehouse.gatewayUrl).host
  const flags = ['--control-plane-listen', '127.0.0.1:0', '--gateway-listen', taken]
  const ran = await run(['up', '--json', '--data', join(directory, 'data'), ...flags])
  expect(ran.code).toBe(1)
  expect(ran.stderr).toContain(new URL(gatehouse.gatewayUrl).port)
  expect(ran.stdout).not.toContain('"ready":true')
  rmSync(directory, { recursive: true, force: true })
})

test('a data directory that cannot be created is named in the error', async () => {
  const ran = await run(['up', '--json', '--data', '/proc/no-such-place/data'])
  expect(ran.code).toBe(1)
  expect(ran.stderr).toContain('/proc/no-such-place')
  expect(ran.stderr).not.toMatch(/\n\s+at /)
})
