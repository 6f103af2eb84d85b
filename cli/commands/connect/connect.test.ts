import { afterAll, beforeEach, expect, test } from 'bun:test'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { runCommandLine } from '../../command/command.ts'
import { report } from '../../command/report.ts'
import type { Input } from '../../terminal/input.ts'
import { recordingControlPlane } from '../../testing/control-plane.ts'
import { recordingTerminal } from '../../testing/terminal.ts'
import { connectCommand } from './connect.ts'

const homes = mkdtempSync(join(tmpdir(), 'gatehouse-connect-'))
const secret = 'gth_made0000000000000000000000000000000'
const made = { id: 'made-id', name: 'made', expires_at: '2026-12-01T00:00:00.000Z', token_value: secret }
const ok = () => Response.json({ object: 'list', data: [{ id: 'm' }] })
let answer: (request: Request) => Response = ok
const asked: { path: string; headers: Headers; body: unknown }[] = []
const gateway = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  async fetch(request) {
    const text = await request.text()
    const { pathname: path } = new URL(request.url)
    asked.push({ path, headers: request.headers, body: text === '' ? null : JSON.parse(text) })
    return answer(request)
  },
})
const servers = [{ url: gateway.url.origin }]
let person: { id: string; email: string } | null = null
let roles: string[] | null = ['member']
const credentials: (string | null)[] = []
const control = recordingControlPlane(({ method, path, headers }) => {
  credentials.push(headers.get('authorization'))
  if (path === '/v1/openapi.json') return { paths: { '/v1/chat/completions': { post: { servers } } } }
  if (path === '/v1/auth/session') {
    return roles === null ? Response.json({}, { status: 401 }) : { user: person, roles }
  }
  return method === 'POST' ? Response.json(made, { status: 201 }) : { id: made.id, status: 'revoked' }
})
afterAll(async () => {
  await Promise.all([control.stop(), gateway.stop(true)])
  rmSync(homes, { recursive: true })
})

let home = ''
beforeEach(() => {
  home = mkdtempSync(join(homes, 'home-'))
  answer = ok
  person = null
  roles = ['member']
  credentials.length = 0
  asked.length = 0
  control.requests.length = 0
})

const nobody: Input = {
  interactive: false,
  line: () => Promise.reject(new Error('Nobody was to be asked')),
  hiddenLine: () => Promise.reject(new Error('Nobody was to be asked')),
}

async function run(rawArguments: readonly string[], input: Partial<Input> = {}, own: Record<string, string> = {}) {
  const environment = {
    ...control.environment,
    HOME: home,
    XDG_CONFIG_HOME: join(home, '.config'),
    USER: 'alice',
    MINE: 'gth_given',
    ...own,
  }
  const terminal = recordingTerminal({ environment })
  const exitCode = await runCommandLine(connectCommand(terminal, { ...nobody, ...input }), rawArguments, terminal)
    .then(() => 0)
    .catch((thrown: unknown) => report(thrown, terminal))
  return { exitCode, out: terminal.written(), notes: terminal.noted() }
}

const posted = () => control.requests.find(({ method, target }) => method === 'POST' && target === '/v1/tokens')?.body

test('makes a narrow token with an end, named after client, host and person, and prints the setup', async () => {
  const { exitCode, out, notes } = await run(['claude-code', '--model', 'm,n*', '--max-budget', '5'])
  expect([exitCode, posted()]).toEqual([
    0,
    {
      name: `claude-code on ${hostname()} for alice`,
      purpose: 'general',
      roles: ['member'],
      max_budget: 5,
      expires_in_seconds: 2_592_000,
      bindings: { model_filter: ['m', 'n*'] },
      metadata: { client: 'claude-code', host: hostname() },
    },
  ])
  expect(out).toContain(`export GATEHOUSE_TOKEN=${secret}\n`)
  expect(out).toContain('"ANTHROPIC_MODEL": "m"')
  expect(out).not.toContain('n*')
  expect(notes).not.toContain(secret)
  expect(notes).toContain('m answered')
})

test('names the token after the person who is signed in', async () => {
  person = { id: 'u', email: 'olga@example.com' }
  await run(['codex', '--expires', '12h'])
  expect(posted()).toMatchObject({ name: `codex on ${hostname()} for olga@example.com`, expires_in_seconds: 43_200 })
})

test('names the token after client and host alone where nobody is known', async () => {
  await run(['codex'], {}, { USER: '' })
  expect(posted()).toMatchObject({ name: `codex on ${hostname()}` })
})

test('notes that a given token has roles that a client does not need', async () => {
  roles = ['owner', 'member']
  const broad = await run(['codex', '--token-env', 'MINE'])
  expect(broad.exitCode).toBe(0)
  expect(broad.notes).toContain('The given token has the role owner, which Codex does not need')
  expect(control.requests.map(({ target }) => target)).toEqual(['/v1/openapi.json', '/v1/auth/session'])
  expect(credentials.at(-1)).toBe('Bearer gth_given')
  roles = ['member']
  expect((await run(['codex', '--token-env', 'MINE'])).notes).not.toContain('does not need')
  roles = null
  const refused = await run(['codex', '--token-env', 'MINE'])
  expect([refused.exitCode, refused.notes]).toEqual([0, expect.not.stringContaining('does not need')])
})

test('asks one question in the language of the client, with its credential', async () => {
  await run(['codex', '--model', 'm'])
  await run(['claude-code', '--model', 'm'])
  await run(['opencode', '--model', 'm'])
  await run(['gemini-cli', '--model', 'm'])
  expect(asked.map(({ path }) => path)).toEqual([
    '/v1/responses',
    '/v1/messages',
    '/v1/chat/completions',
    '/v1beta/models/m:generateContent',
  ])
  expect(asked.map(({ headers }) => headers.get('authorization') ?? headers.get('x-goog-api-key'))).toEqual([
    `Bearer ${secret}`,
    `Bearer ${secret}`,
    `Bearer ${secret}`,
    secret,
  ])
  expect(asked.map(({ body }) => body)).toMatchObject([
    { model: 'm' },
    { model: 'm' },
    { model: 'm' },
    { contents: [{}] },
  ])
})

test('lists the models where no model is named', async () => {
  const { notes } = await run(['codex'])
  expect(asked.map(({ path }) => path)).toEqual(['/v1/models'])
  expect(notes).toMatch(
    /The gateway accepts the token and lists 1 models \(\d+ ms\)\. Name one with --model to try it\n/,
  )
})

test('waits for a gateway that does not know the new token yet', async () => {
  answer = () =>
    asked.length < 3 ? Response.json({ error: { message: 'no', code: 'invalid_api_token' } }, { status: 401 }) : ok()
  expect((await run(['codex', '--model', 'm'])).exitCode).toBe(0)
  expect(asked.length).toBe(3)
})

test('says what the gateway refused and what to do, and revokes the token that it made', async () => {
  answer = () =>
    Response.json(
      { error: { message: 'No such model', code: 'model_not_found' } },
      { status: 404, headers: { 'x-request-id': 'req-1' } },
    )
  const { exitCode, out, notes } = await run(['codex', '--model', 'm', '--write', '--yes'])
  expect([exitCode, out]).toEqual([1, ''])
  expect(notes).toContain('A request for m to /v1/responses was refused by the gateway: No such model')
  expect(notes).toContain('(model_not_found, request req-1). Name another with --model')
  expect(control.requests.at(-1)).toMatchObject({ method: 'DELETE', target: '/v1/tokens/made-id' })
  expect(existsSync(join(home, '.codex/config.toml'))).toBe(false)
})

test('finds the code in the form of errors of each language', async () => {
  const forms = {
    'claude-code': {
      type: 'error',
      error: { type: 'permission_error', message: 'no', code: 'tokens.model_not_allowed' },
    },
    'gemini-cli': {
      error: { code: 403, message: 'no', status: 'X', details: [{ reason: 'tokens.model_not_allowed' }] },
    },
    codex: { error: { message: 'no', type: 'access_denied', code: 'tokens.model_not_allowed' } },
  }
  for (const [client, form] of Object.entries(forms)) {
    answer = () => Response.json(form, { status: 403 })
    const { notes } = await run([client, '--model', 'm'])
    expect(notes).toContain(
      'no (tokens.model_not_allowed, request -). Name a model with --model that the token may use',
    )
  }
})

test('says that the provider behind the gateway refused', async () => {
  const headers = { 'x-service-error-source': 'upstream' }
  answer = () => Response.json({ error: { message: 'bad key', code: 'upstream_error' } }, { status: 502, headers })
  expect((await run(['codex', '--model', 'm'])).notes).toContain(
    'was refused by the provider behind the gateway: bad key',
  )
})

test('says that something else than a gateway answers, or nothing', async () => {
  answer = () => new Response('<html>', { status: 404 })
  expect((await run(['codex', '--model', 'm'])).notes).toContain('is not a Gatehouse gateway')
  const { exitCode, notes } = await run(['codex', '--gateway-url', 'http://127.0.0.1:1'])
  expect(exitCode).toBe(1)
  expect(notes).toContain('The gateway at http://127.0.0.1:1 could not be reached from this host')
})

test('uses a given token and makes none', async () => {
  const { out } = await run(['openai-sdk', '--token-env', 'MINE', '--json'])
  expect(posted()).toBeUndefined()
  expect(asked[0]?.headers.get('authorization')).toBe('Bearer gth_given')
  expect(JSON.parse(out)).toMatchObject({
    client: 'openai-sdk',
    gateway_url: gateway.url.origin,
    token: null,
    environment: { OPENAI_BASE_URL: `${gateway.url.origin}/v1`, OPENAI_API_KEY: 'gth_given' },
    checked: { model: null, listed: 1 },
  })
  expect(JSON.parse(out)).not.toHaveProperty('token_value')
  const typed = await run(['openai-sdk', '--token-stdin'], { hiddenLine: async () => 'gth_typed00\n' })
  expect(typed.out).toContain('OPENAI_API_KEY=gth_typed00')
})

test('a refused token that was given is not revoked and not retried', async () => {
  answer = () => Response.json({ error: { message: 'no', code: 'invalid_api_token' } }, { status: 401 })
  expect((await run(['codex', '--token-env', 'MINE'])).exitCode).toBe(1)
  expect(asked.length).toBe(1)
  expect(control.requests.map(({ method }) => method)).toEqual(['GET'])
})

test('shows the lines that change without secrets, asks, and writes after yes', async () => {
  writeFileSync(join(home, '.aider.conf.yml'), 'openai-api-key: sk-old-secret-of-mine\nauto-commits: false\n')
  const flags = ['aider', '--model', 'm', '--write']
  const { exitCode, out, notes } = await run(flags, { interactive: true, line: async () => 'y' })
  expect([exitCode, out]).toEqual([0, `${join(home, '.aider.conf.yml')}\n`])
  expect(notes).toContain('-openai-api-key: …')
  expect(notes).toContain('Change these files? [y/N]')
  expect(notes).not.toMatch(/sk-old|gth_made/)
  expect(readFileSync(join(home, '.aider.conf.yml'), 'utf8')).toContain(`openai-api-key: ${secret}`)
})

test('makes no token and changes nothing after no, and where nobody can be asked', async () => {
  const no = await run(['codex', '--write'], { interactive: true, line: async () => '' })
  const alone = await run(['codex', '--write'])
  expect([no.exitCode, alone.exitCode]).toEqual([2, 2])
  expect(no.notes).toContain('Nothing was changed')
  expect(alone.notes).toContain('repeat the command with --yes')
  expect(posted()).toBeUndefined()
  expect(existsSync(join(home, '.codex'))).toBe(false)
})

test('takes back what it wrote, and says how the token is revoked', async () => {
  await run(['codex', '--write', '--yes'])
  const { exitCode, out, notes } = await run(['codex', '--undo', '--yes'])
  expect([exitCode, out]).toEqual([0, `${join(home, '.codex/config.toml')}\n`])
  expect(notes).toContain('gatehouse token delete made-id --yes')
  expect(existsSync(join(home, '.codex/config.toml'))).toBe(false)
  expect((await run(['codex', '--undo', '--yes'])).notes).toContain('connect codex has written nothing here')
})

test('says that the secret stays where a changed provider still reads it', async () => {
  await run(['codex', '--write', '--yes'])
  const path = join(home, '.codex/config.toml')
  writeFileSync(path, readFileSync(path, 'utf8').replace('name = "Gatehouse"', 'name = "Mine"'))
  const { notes } = await run(['codex', '--undo', '--yes'])
  expect(notes).toContain(`stays and reads ${join(home, '.config/gatehouse/clients/codex.token')}`)
  expect(existsSync(join(home, '.config/gatehouse/clients/codex.token'))).toBe(true)
})

test('revokes the token that it made where a file cannot be written', async () => {
  const { exitCode, notes } = await run(['codex', '--write', '--yes'], {}, { HOME: '/proc/self' })
  expect([exitCode, notes]).toEqual([1, expect.stringContaining('/proc/self/.codex/config.toml cannot be written')])
  expect(control.requests.at(-1)).toMatchObject({ method: 'DELETE', target: '/v1/tokens/made-id' })
})

test('refuses flags that do not fit before anything is done', async () => {
  const refused: readonly (readonly [string[], string])[] = [
    [['claude'], 'There is no such client: use one of claude-code, codex'],
    [['opencode'], 'opencode must be told its models'],
    [['aider', '--model', 'gpt-*'], 'aider must be told its models'],
    [['cursor', '--model', 'm', '--write'], 'Cursor has no file that could be written'],
    [['codex', '--write', '--undo'], '--write and --undo contradict'],
    [['codex', '--token-env', 'MINE', '--expires', '1d'], '--max-budget and --expires are for a new token'],
    [['codex', '--token-env', 'MINE', '--token-stdin'], 'give one'],
    [['codex', '--token-env', 'NONE'], 'The environment has no variable NONE'],
    [['codex', '--expires', 'soon'], '--expires takes minutes, hours or days'],
    [['codex', '--gateway-url', 'https://g/v1'], '--gateway-url: An origin has no path'],
  ]
  for (const [rawArguments, message] of refused) {
    const { exitCode, notes } = await run(rawArguments)
    expect([exitCode, notes]).toEqual([2, expect.stringContaining(message)])
  }
  expect(posted()).toBeUndefined()
})
