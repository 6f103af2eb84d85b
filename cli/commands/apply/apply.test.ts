import { afterAll, afterEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { z } from 'zod'
import { runCommandLine } from '../../command/command.ts'
import { recordingControlPlane } from '../../testing/control-plane.ts'
import { recordingTerminal } from '../../testing/terminal.ts'
import { applyCommand } from './apply.ts'

const present = (name: string, fields: object) => ({
  ...{ id: `id-${name}`, name, version: 3, url: null, header_names: [], oauth: null, command: null },
  ...{ environment_names: [], timeouts: null, approval: 'first_use', enabled: true },
  ...{ tools: 'listed', personal: false, personal_oauth: null, quarantined: false, ...fields },
})
const oauth = { token_url: 'https://l.example.com/t', client_id: 'gate' }
const there = [
  present('same', { url: 'https://same.example.com/mcp', header_names: ['X-Key'], oauth }),
  present('moved', { url: 'https://old.example.com/mcp', header_names: ['X-Key'] }),
  present('gone', { command: { program: 'npx', args: [] } }),
]
const shownModel = (id: string, weight: number) => ({
  ...{ id, version: 2, strategy: 'weighted', families: null, price: null, max_output_tokens: null, fallbacks: [] },
  ...{
    translation: 'lenient',
    targets: [
      { provider: 'a', weight, tier: 1 },
      { provider: 'b', weight: 1, tier: 1 },
    ],
  },
})
const shownModels = [shownModel('same/model', 3), shownModel('canary/model', 1)]
let refusing = false
let providersThere: object[] = []
const control = recordingControlPlane(({ method, path }) =>
  method !== 'GET'
    ? refusing
      ? Response.json(
          { error: { message: 'It has changed', code: 'version_mismatch', param: 'calls.0' } },
          { status: 412 },
        )
      : present('done', {})
    : path === '/v1/policies'
      ? { policies: [], next_cursor: null }
      : path === '/v1/catalog/providers'
        ? { providers: providersThere, next_cursor: null }
        : path === '/v1/catalog/models'
          ? { models: shownModels, next_cursor: null }
          : { mcp_servers: there, teams: [], users: [], gateways: [], tokens: [], next_cursor: null },
)
const folder = mkdtempSync(join(tmpdir(), 'apply-'))
afterEach(() => control.requests.splice(0))
afterAll(async () => {
  rmSync(folder, { recursive: true })
  await control.stop()
})

const secrets = { KEY: 'header-secret', SECRET: 'client-secret', ENVIRONMENT: 'environment-secret' }
const yaml = `
policies: []
mcp_servers:
  - name: same
    url: https://same.example.com/mcp
    headers: { X-Key: { env: KEY } }
    oauth: { token_url: "https://l.example.com/t", client_id: gate, client_secret: { env: SECRET } }
  - name: moved
    url: https://new.example.com/mcp
    headers: { X-Key: { env: KEY } }
    approval: required
  - name: local
    command: { program: npx, args: [server] }
    environment: { API_KEY: { env: ENVIRONMENT } }
`

async function apply(text: string, ...flags: string[]) {
  const path = join(folder, text.startsWith('{"') ? 'file.json' : 'file.yaml')
  writeFileSync(path, text)
  const terminal = recordingTerminal({ environment: { ...control.environment, ...secrets } })
  await runCommandLine(applyCommand(terminal), ['-f', path, ...flags], terminal)
  return terminal.written() + terminal.noted()
}
const calls = () =>
  control.requests
    .filter(({ method }) => method !== 'GET')
    .map(({ body }) => z.object({ calls: z.array(callSchema), dry_run: z.boolean() }).parse(body))
    .flatMap((sent) => (sent.dry_run ? [] : sent.calls))
const callSchema = z.looseObject({ method: z.string(), path: z.string(), body: z.unknown().optional() })
const sent = () =>
  calls().map(({ method, path, body }) => [`${method} ${path.replace('/v1/catalog/mcp-servers', '')}`, body])

test('apply makes MCP servers match a file, with secrets from variables, and shows no secret', async () => {
  const shown = await apply(yaml, '--dry-run')
  expect(shown).toBe(
    '= MCP server same\n~ MCP server moved\n' +
      '    url: "https://old.example.com/mcp" -> "https://new.example.com/mcp"\n' +
      '    approval: "first_use" -> "required"\n+ MCP server local\n' +
      '    + command:\n    +   program: npx\n    +   args:\n    +     - server\n' +
      '    + environment:\n    +   API_KEY: (secret)\n' +
      '1 to create, 1 to change, 1 unchanged. Nothing was changed\n',
  )
  expect(sent()).toEqual([])
  const said = (await apply(yaml)) + (await apply(yaml, '--json'))
  expect(said).not.toMatch(/-secret/)
  expect(sent().slice(0, 2)).toEqual([
    [
      'PATCH /id-moved',
      { url: 'https://new.example.com/mcp', approval: 'required', headers: { 'X-Key': 'header-secret' } },
    ],
    [
      'POST ',
      {
        name: 'local',
        command: { program: 'npx', args: ['server'] },
        environment: { API_KEY: 'environment-secret' },
        approval: 'first_use',
        ...{ enabled: true, tools: 'listed', personal: false, quarantined: false },
      },
    ],
  ])
})

test("apply sends unchanged records' secrets with --secrets only", async () => {
  await apply(yaml.slice(0, yaml.indexOf('  - name: moved')), '--secrets')
  const client = { ...oauth, client_secret: 'client-secret' }
  expect(sent()).toEqual([['PATCH /id-same', { headers: { 'X-Key': 'header-secret' }, oauth: client }]])
  control.requests.splice(0)
  expect(await apply('mcp_servers: [{ name: gone, command: { program: npx } }]', '--secrets')).toBe(
    '= MCP server gone\n',
  )
  expect(sent()).toEqual([])
})

test('apply resets fields that a file leaves out, removes secrets, and --dry-run shows it', async () => {
  const bare = (name: string) => `  - { name: ${name}, url: "https://${name}.example.com/mcp" }\n`
  there.push(present('strict', { url: 'https://strict.example.com/mcp', approval: 'required', enabled: false }))
  const file = `mcp_servers:\n${bare('same')}${bare('strict')}`
  expect(await apply(file, '--dry-run', '--secrets')).toBe(
    '~ MCP server same\n    - headers:\n    -   X-Key: (secret)\n    - oauth:\n' +
      '    -   token_url: https://l.example.com/t\n    -   client_id: gate\n    -   client_secret: (secret)\n' +
      '~ MCP server strict\n    approval: "required" -> "first_use"\n    enabled: false -> true\n' +
      '2 to change. Nothing was changed\n',
  )
  await apply(file)
  there.pop()
  expect(sent()).toEqual([
    ['PATCH /id-same', { headers: null, oauth: null }],
    ['PATCH /id-strict', { approval: 'first_use', enabled: true }],
  ])
})

test('apply resends nothing for a server without secrets, and names the record whose change is refused', async () => {
  there.push(present('open', { url: 'https://open.example.com/mcp' }))
  const open = 'mcp_servers:\n  - { name: open, url: "https://open.example.com/mcp"'
  expect(await apply(`${open} }\n`, '--secrets')).toBe('= MCP server open\n')
  refusing = true
  await expect(apply(`${open}, enabled: false }\n`)).rejects.toThrow('It has changed (MCP server "open")')
  refusing = false
  there.pop()
})

test('apply deletes with --prune only, and only from lists that the file has', async () => {
  await apply('mcp_servers: []', '--prune', '--yes')
  expect(sent().map(([request]) => request)).toEqual(['DELETE /id-same', 'DELETE /id-moved', 'DELETE /id-gone'])
  control.requests.splice(0)
  await apply('policies: []', '--prune', '--yes')
  expect(sent()).toEqual([])
})

test('apply changes nothing for a file with an unknown field, a secret or a duplicate name', async () => {
  const server = (more: string) => `mcp_servers:\n  - { name: a, url: "https://a.example.com/mcp"${more} }\n`
  await expect(apply('servers: []')).rejects.toThrow('servers: nothing has this name')
  await expect(apply('constructor: []')).rejects.toThrow('constructor: nothing has this name')
  await expect(apply('{}')).rejects.toThrow('has no list')
  await expect(apply(server(', headers: { X-Key: secret }'))).rejects.toThrow('headers')
  await expect(apply(server('') + server('').slice(13))).rejects.toThrow('twice')
  await expect(apply('{"mcp_servers":[],"mcp_servers":[]}')).rejects.toThrow('file.json:1:19: Map keys must be unique')
  await expect(apply(`${server('')}  - { name: b__c, url: "https://b.example.com/mcp" }\n`)).rejects.toThrow('b__c')
  await expect(apply(`${server('')}  - { name: b }\n`)).rejects.toThrow('mcp_servers[1].url: Write where')
  const pattern =
    '{ name: p, kind: pattern-filter, stages: [pre_response], config: { patterns: [{ name: a, pattern: "(" }], action: block } }'
  await expect(apply(`${server('')}policies: [${pattern}]`)).rejects.toThrow('policies[0].config.patterns[0]')
  expect(sent()).toEqual([])
  await expect(
    apply(`${server('')}  - { name: b, url: "https://b.example.com/mcp", headers: { X-Key: { env: NONE } } }\n`),
  ).rejects.toThrow('NONE')
  expect(sent()).toEqual([])
})

const shownProvider = (name: string, fields: object) => ({
  ...{ id: `id-${name}`, name, version: 2, kind: 'openai', base_url: null, has_api_key: true, header_names: [] },
  ...{ allow_unlisted_models: false, default_price: null, timeouts: null, ...fields },
})

test('apply makes providers match a file, presets too, with keys from variables', async () => {
  providersThere = [
    shownProvider('same', { base_url: 'https://same.example.com/v1' }),
    shownProvider('moved', { base_url: 'https://old.example.com', header_names: ['X-Org'] }),
    shownProvider('anthropic', { kind: 'anthropic', allow_unlisted_models: true }),
  ]
  const file = `
providers:
  - { name: same, kind: openai, base_url: "https://same.example.com/v1/", api_key: { env: KEY } }
  - { name: moved, kind: openai, base_url: "https://new.example.com", api_key: { env: KEY } }
  - { preset: anthropic, api_key: { env: KEY }, timeouts: { idle_seconds: 9 } }
  - { preset: groq, api_key: { env: SECRET } }
`
  const shown = await apply(file)
  expect(shown).not.toMatch(/-secret/)
  expect(shown).toContain('= provider same\n~ provider moved\n')
  expect(sent().map(([what, body]) => [String(what).replace('/v1/catalog/providers', ''), body])).toEqual([
    ['PATCH /id-moved', { base_url: 'https://new.example.com', api_key: 'header-secret', headers: null }],
    ['PATCH /id-anthropic', { timeouts: { idle_seconds: 9 } }],
    ['POST ', { name: 'groq', kind: 'groq', allow_unlisted_models: true, api_key: 'client-secret' }],
  ])
  control.requests.splice(0)
  expect(await apply(file, '--secrets', '--dry-run')).toContain('~ provider same')
  for (const [entry, message] of [
    ['preset: grok', 'Did you mean groq?'],
    ['kind: openai', 'name'],
    ['name: same, kind: anthropic', 'cannot be changed to anthropic'],
    ['preset: groq, kind: openai', 'kind: The preset says the kind'],
    ['name: a, kind: openai, base_url: "ftp://a"', 'base_url'],
    ['name: a, kind: openai, api_key: secret', 'api_key'],
    ['preset: groq, api_key: { env: UNSET }', 'UNSET'],
  ]) {
    await expect(apply(`providers: [{ ${entry} }]`)).rejects.toThrow(message)
  }
  expect(sent()).toEqual([])
})

test('models are created and changed by their names, such as the weight of a canary', async () => {
  const model = (name: string, weight: number) => ({
    name,
    strategy: 'weighted',
    targets: [{ provider: 'a', weight }, { provider: 'b' }],
  })
  const file = { models: [model('same/model', 3), model('canary/model', 5), model('new', 1)] }
  const said = await apply(JSON.stringify(file))
  expect(said).toContain('= model same/model')
  expect(said).toContain('~ model canary/model')
  expect(said).toContain('+ model new')
  const target = (weight: number) => ({ provider: 'a', weight, tier: 1 })
  expect(calls()).toMatchObject([
    {
      method: 'PATCH',
      path: '/v1/catalog/models/canary%2Fmodel',
      body: { targets: [{ ...target(5), upstream_model: 'canary/model' }, { provider: 'b' }] },
    },
    {
      method: 'POST',
      path: '/v1/catalog/models',
      body: { id: 'new', strategy: 'weighted', targets: [target(1), { provider: 'b' }] },
    },
  ])
})
