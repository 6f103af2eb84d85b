/** `connect` against a running installation: the token, the check, and what is written, used as clients use it. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { z } from 'zod'
import { tokenPage } from '../support/answers.ts'
import { api, createToken, expectAnswer } from '../support/client.ts'
import { type Gatehouse, run, startGatehouse, temporaryDirectory } from '../support/harness.ts'

setDefaultTimeout(60_000)

const echo = 'simulator/echo'
const home = temporaryDirectory()
let gatehouse: Gatehouse
beforeAll(async () => {
  gatehouse = await startGatehouse()
}, 120_000)
afterAll(async () => {
  await gatehouse.stop()
  rmSync(home, { recursive: true })
})

const connect = (rawArguments: readonly string[], environment: Readonly<Record<string, string>> = {}) => {
  const { baseUrl, adminToken } = gatehouse
  const env = { HOME: home, SERVICE_API_URL: baseUrl, SERVICE_API_TOKEN: adminToken, ...environment }
  return run(['connect', ...rawArguments], { env })
}

const printed = z.looseObject({
  token: z.looseObject({ id: z.string(), name: z.string(), expires_at: z.string() }),
  environment: z.record(z.string(), z.string()),
  checked: z.looseObject({ model: z.string() }),
})

const tokenNamed = async (client: string) => {
  const { tokens } = expectAnswer(await api(gatehouse, `/v1/tokens?name=${client}%20on`), 200, tokenPage)
  return tokens[0]
}

test('the check passes in the language of each client that the gateway serves', async () => {
  for (const client of ['claude-code', 'codex', 'opencode', 'cline', 'aider', 'continue', 'openai-sdk', 'langchain']) {
    const { code, stderr } = await connect([client, '--model', echo])
    expect([client, code, stderr]).toEqual([client, 0, expect.stringContaining(`${echo} answered in`)])
  }
})

test('the printed variables serve the OpenAI SDK, and the token may use the named models alone', async () => {
  const { stdout } = await connect(['openai-sdk', '--model', echo, '--expires', '1h', '--json'])
  const { environment, token } = printed.parse(JSON.parse(stdout))
  const openai = new OpenAI({
    baseURL: environment.OPENAI_BASE_URL,
    apiKey: environment.OPENAI_API_KEY,
    maxRetries: 0,
  })
  const messages = [{ role: 'user' as const, content: 'Hello' }]
  const answer = await openai.chat.completions.create({ model: echo, messages })
  expect(answer.choices[0]?.message.content).toBe('Hello')
  const refused = async () => await openai.chat.completions.create({ model: 'simulator/lorem', messages })
  await expect(refused()).rejects.toThrow('may not use this model')
  expect(Date.parse(token.expires_at) - Date.now()).toBeLessThanOrEqual(3_600_000)
  const made = await tokenNamed('openai-sdk')
  expect(made).toMatchObject({ id: token.id, roles: ['member'], bindings: { model_filter: [echo] } })
})

test('the written settings serve Claude Code: its helper gives the secret that the gateway accepts', async () => {
  const path = join(home, '.claude/settings.json')
  const original = '{\n  "theme": "dark",\n  "permissions": { "allow": ["Bash(ls)"] }\n}\n'
  mkdirSync(dirname(path))
  writeFileSync(path, original)
  expect((await connect(['claude-code', '--model', echo, '--write', '--yes'])).code).toBe(0)
  const settings = z
    .looseObject({ theme: z.string(), apiKeyHelper: z.string(), env: z.record(z.string(), z.string()) })
    .parse(JSON.parse(readFileSync(path, 'utf8')))
  const { stdout } = Bun.spawnSync(['sh', '-c', settings.apiKeyHelper])
  const { ANTHROPIC_BASE_URL: baseURL, ANTHROPIC_MODEL: model = '' } = settings.env
  const anthropic = new Anthropic({ baseURL, apiKey: stdout.toString().trim(), maxRetries: 0 })
  const answer = await anthropic.messages.create({
    model,
    max_tokens: 64,
    messages: [{ role: 'user', content: 'Hello' }],
  })
  expect(answer.content).toMatchObject([{ type: 'text', text: 'Hello' }])
  expect(settings.theme).toBe('dark')
  expect((await connect(['claude-code', '--undo', '--yes'])).code).toBe(0)
  expect(readFileSync(path, 'utf8')).toBe(original)
})

test('an unknown model is named, nothing is written and the new token is revoked', async () => {
  const { code, stdout, stderr } = await connect(['codex', '--model', 'nobody/knows', '--write', '--yes'])
  expect([code, stdout]).toEqual([1, ''])
  expect(stderr).toContain('A request for nobody/knows to /v1/responses was refused by the gateway: No such model')
  expect(stderr).toContain('code gateway_check_failed')
  expect(existsSync(join(home, '.codex'))).toBe(false)
  expect(await tokenNamed('codex')).toMatchObject({ status: 'revoked' })
})

test('a given token that may not use the model is named as the reason', async () => {
  const narrow = await createToken(gatehouse, { bindings: { model_filter: ['simulator/lorem'] } })
  const flags = ['codex', '--model', echo, '--token-env', 'MINE']
  const { code, stderr } = await connect(flags, { MINE: narrow.token_value })
  expect([code, stderr]).toEqual([
    1,
    expect.stringContaining('The token may not use this model (tokens.model_not_allowed'),
  ])
  expect(stderr).not.toContain('revoked')
})

test('a control plane in place of a gateway, and a gateway that is away, are named', async () => {
  const wrong = await connect(['codex', '--model', echo, '--gateway-url', gatehouse.baseUrl])
  expect([wrong.code, wrong.stderr]).toEqual([1, expect.stringContaining('name the gateway with --gateway-url')])
  const away = await connect(['codex', '--gateway-url', 'http://127.0.0.1:1'])
  expect([away.code, away.stderr]).toEqual([1, expect.stringContaining('could not be reached from this host')])
})

test('a caller who may make no token is refused, and one with a token needs no sign-in', async () => {
  const member = await createToken(gatehouse)
  const refused = await connect(['codex'], { SERVICE_API_TOKEN: member.token_value })
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('code permission_denied')])
  const own = { SERVICE_API_TOKEN: '', MINE: member.token_value }
  expect((await connect(['codex', '--token-env', 'MINE'], own)).code).toBe(0)
})

test('claude-code can sign people in at the gateway: registered once, checked, and printed', async () => {
  const first = await connect(['claude-code', '--sign-in', '--json'])
  const said = JSON.parse(first.stdout)
  expect(said).toMatchObject({ gateway_url: gatehouse.gatewayUrl, client_id: 'claude-code', registered: true })
  expect(said.files[0]).toEqual({
    platform: 'Linux',
    path: '/etc/claude-code/managed-settings.json',
    text: `{\n  "forceLoginMethod": "gateway",\n  "forceLoginGatewayUrl": "${gatehouse.gatewayUrl}"\n}\n`,
  })
  const second = await connect(['claude-code', '--sign-in'])
  expect([second.code, second.stderr.includes('Registered')]).toEqual([0, false])
  expect(second.stdout).toContain('# macOS: /Library/Application Support/ClaudeCode/managed-settings.json')
  const faultOf = async (...flags: string[]) => (await connect(flags)).stderr
  expect(await faultOf('codex', '--sign-in')).toContain('Codex cannot sign people in at the gateway')
  expect(await faultOf('claude-code', '--sign-in', '--write')).toContain('--write and --sign-in contradict each other')
  const nowhere = await faultOf('claude-code', '--sign-in', '--gateway-url', 'http://127.0.0.1:9')
  expect(nowhere).toContain('No gateway offers sign-in at http://127.0.0.1:9')
  await api(gatehouse, '/v1/oauth/clients/claude-code/deactivate', { method: 'POST', body: {} })
  expect(await faultOf('claude-code', '--sign-in')).toContain('gatehouse oauth-client activate claude-code')
})
