/** Mistakes that somebody makes who writes files for apply, and what each is told. Nothing is changed by any. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Gatehouse, operate, startGatehouse } from '../support/harness.ts'

let gatehouse: Gatehouse
let before: string
const folder = mkdtempSync(join(tmpdir(), 'apply-mistakes-'))
beforeAll(async () => {
  gatehouse = await startGatehouse()
  mkdirSync(join(folder, 'empty'))
  before = (await operate(gatehouse, 'export')).stdout
}, 60_000)
afterAll(async () => {
  const after = (await operate(gatehouse, 'export')).stdout
  await gatehouse.stop()
  rmSync(folder, { recursive: true })
  expect(after).toBe(before)
})

/** What the command says of a file with this text, without the folder's name. A dry run must say the same. */
async function told(text: string | Uint8Array, ...flags: string[]): Promise<string> {
  return await toldOf('f.yaml', text, ...flags)
}

async function toldOf(name: string, text: string | Uint8Array, ...flags: string[]): Promise<string> {
  const path = join(folder, name)
  writeFileSync(path, text)
  const said = async (...more: string[]) => {
    const { code, stdout, stderr } = await operate(gatehouse, 'apply', '-f', path, ...flags, ...more)
    expect([code === 0, stdout]).toEqual([false, ''])
    expect(stderr).not.toMatch(/\n\s+at /)
    return [code, stderr.replaceAll(`${folder}/`, '').replace(/, request \S+/, '')] as const
  }
  const real = await said()
  if (!flags.some((flag) => ['--prune', '--watch'].includes(flag))) expect(await said('--dry-run')).toEqual(real)
  return real[1]
}

const provider = (fields: string) => `providers:\n  - { name: a, kind: openai, ${fields} }\n`
const budget = (fields: string) => `budgets:\n  - { name: a, max_budget: 1, window: month, ${fields} }\n`
const policy = (fields: string) => `policies:\n  - { name: a, stages: [pre_request], ${fields} }\n`
const alert = (fields: string) => `alerts:\n  - { name: a, ${fields} }\n`
const model = (fields: string) => `models:\n  - { name: a, ${fields} }\n`

const mistakes: readonly (readonly [string, string, string, ...string[]])[] = [
  ['a list with a wrong name', 'provders: []', 'f.yaml:1:1: provders: nothing has this name: did you mean providers?'],
  ['an object instead of a list', 'teams: { name: a }', 'f.yaml:1:1: teams: Write a list'],
  ['a file that is a list', '- a\n', 'f.yaml:1:1: It holds no lists: write teams,'],
  ['an empty file', '', 'f.yaml has no list: teams,'],
  ['a tab', 'teams:\n\t- name: a\n', 'f.yaml:2:1: Tabs are not allowed as indentation'],
  ['an open quotation mark', 'teams:\n  - name: "a\n', 'f.yaml:3:1: Missing closing "quote'],
  ['a list twice', 'teams: []\nteams: []\n', 'f.yaml:2:1: Map keys must be unique'],
  [
    'a mistyped field',
    provider('base_ur: x'),
    'f.yaml:2:30: providers[0].base_ur: is no field: did you mean base_url? (provider "a")',
  ],
  [
    'a mistyped field within another',
    provider('timeouts: { idle_second: 3 }'),
    'f.yaml:2:42: providers[0].timeouts.idle_second: is no field: did you mean idle_seconds?',
  ],
  ['no name', 'teams:\n  - {}\n', 'f.yaml:2:5: teams[0].name: is missing'],
  [
    'a text for a number',
    budget('scope: { kind: organization }').replace('1,', '"ten",'),
    'f.yaml:2:28: budgets[0].max_budget: Write a number, not a text (budget "a")',
  ],
  [
    'a choice that does not exist',
    budget('scope: { kind: organization }').replace('month', 'monthly'),
    'budgets[0].window: Write one of day, week, month, total: did you mean month?',
  ],
  [
    'a number that is too small',
    budget('scope: { kind: organization }').replace('1,', '-1,'),
    'f.yaml:2:28: budgets[0].max_budget: Write a number above 0',
  ],
  [
    'a scope without its team',
    budget('scope: { kind: team }'),
    'budgets[0].scope.name: Name the team, the user or the MCP server',
  ],
  [
    'a mistyped team',
    budget('scope: { kind: team, name: defautl }'),
    'budgets[0].scope.name: There is no team "defautl": did you mean default?',
  ],
  [
    'a secret itself',
    provider('api_key: sk-secret'),
    'f.yaml:2:39: providers[0].api_key: Say where the secret is, never the secret: { env: NAME }',
  ],
  [
    'a secret header itself',
    'mcp_servers:\n  - { name: a, url: "https://a.example.com", headers: { X-K: sk-secret } }\n',
    'mcp_servers[0].headers.X-K: Say where the secret is',
  ],
  [
    'a variable that is not set',
    provider('api_key: { env: NOPE }'),
    'f.yaml:2:39: providers[0].api_key: The environment has no variable NOPE (provider "a")',
  ],
  [
    'a file of a secret that is not there',
    provider('api_key: { file: no.txt }'),
    'providers[0].api_key: The secret {"file":"no.txt"} cannot be read: ENOENT',
  ],
  ['a command that fails', provider('api_key: { command: ["false"] }'), 'cannot be read: it ended with 1'],
  ['a command that does not exist', provider('api_key: { command: [nosuchprogram] }'), 'the program cannot be started'],
  [
    'Vault without its address',
    provider('api_key: "vault://secret/data/a#k"'),
    'The environment has no variable VAULT_ADDR',
  ],
  ['Vault without a field', provider('api_key: "vault://secret/data/a"'), 'Say where the secret is'],
  [
    'a mistyped preset',
    'providers: [{ preset: grok }]',
    'providers[0].preset: No preset has this name. Did you mean groq?',
  ],
  [
    'a mistyped kind of policy',
    policy('kind: term-filtre, config: {}'),
    'policies[0].kind: Write one of term-filter, ',
  ],
  [
    'an empty list where one is needed',
    policy('kind: term-filter, config: { terms: [], action: block }'),
    'policies[0].config.terms: Give at least 1 entry',
  ],
  [
    'a window of a condition that has none',
    alert('condition: sink_lag, window_minutes: 5'),
    'f.yaml:2:53: alerts[0].window_minutes: The condition sink_lag has no window that can be chosen: leave it out',
  ],
  [
    'a least number of a condition that has none',
    alert('condition: gateway_stale, at_least: 5'),
    'f.yaml:2:52: alerts[0].at_least: The condition gateway_stale has no least number: leave it out',
  ],
  [
    'a filter of a sink with a member that no event has',
    'sinks: [{ name: a, kind: http, url: "https://a.example.com", filter: event.modle == "x" }]',
    'sinks[0].filter: The filter names event.modle, which does not exist: event has event_id',
  ],
  [
    'a broken pattern',
    policy('kind: pattern-filter, config: { patterns: [{ name: a, pattern: "(" }], action: block }'),
    'policies[0].config.patterns[0].pattern: The pattern cannot be used',
  ],
  [
    'a broken condition',
    policy('kind: term-filter, when: "request.model ==", config: { terms: [x], action: block }'),
    'policies[0].when: The condition is not valid',
  ],
  [
    'a record twice',
    'teams:\n  - name: a\n  - name: a\n',
    'f.yaml:3:5: teams[1]: The team "a" stands twice: also at f.yaml:2:5',
  ],
  ['a model without targets', 'models: [{ name: a }]', 'f.yaml:1:10: models[0].targets: is missing (model "a")'],
  [
    'a mistyped provider',
    model('targets: [{ provider: simulatr }]'),
    'models[0].targets[0].provider: There is no provider "simulatr" (model "a"). Nothing was changed',
  ],
  [
    'a fallback that does not exist',
    model('targets: [{ provider: simulator }], fallbacks: [b]'),
    'models[0].fallbacks[0]: There is no model "b"',
  ],
  [
    'a fallback to itself',
    model('targets: [{ provider: simulator }], fallbacks: [a]'),
    'models[0].fallbacks[0]: A model cannot fall back to itself (model "a"). Nothing was changed',
  ],
  [
    'another kind of provider',
    'providers: [{ name: simulator, kind: openai }]',
    'which cannot be changed to openai: delete it first',
  ],
  [
    'no e-mail address',
    'users: [{ email: ada, name: Ada }]',
    'users[0].email: Write an e-mail address: name@example.com',
  ],
  [
    'a password',
    'users: [{ email: a@example.com, name: A, password: x }]',
    'users[0].password: is no field; there are email, name, role, status, teams',
  ],
  [
    "the API's name of a reference",
    'managed_settings: [{ name: a, settings: {}, team_ids: [x] }]',
    'managed_settings[0].team_ids: is no field: did you mean teams?',
  ],
  ['nothing in a list', 'teams: [null]', 'f.yaml:1:9: teams[0]: Write an object, not nothing'],
  [
    'a number that is too large',
    budget('scope: { kind: organization }').replace('1,', '99999999999,'),
    'f.yaml:2:28: budgets[0].max_budget: Write a number of at most 9000000',
  ],
  ['a merge of no object', 'teams: [{ <<: 3, name: a }]', 'f.yaml: Merge sources must be maps'],
  ['an alias of nothing', 'teams: [*t]\n', 'f.yaml:1:9: No value before it is marked &t, so *t names nothing'],
  [
    'an alias within itself',
    'teams: &t\n  - { name: a, teams: *t }\n',
    'f.yaml:2:23: *t names a value that it is a part of',
  ],
  [
    'aliases that stand for too much',
    `a: &a [x, x, x, x, x, x, x, x, x, x]\n${['b', 'c', 'd', 'e']
      .map((name, index) => `${name}: &${name} [${Array(10).fill(`*${'abcd'[index]}`).join(', ')}]\n`)
      .join('')}`,
    'f.yaml: its aliases stand for too much',
  ],
  ['an unknown tag', 'teams: [{ name: !env A }]', 'f.yaml:1:17: Unresolved tag: !env: write the value without it'],
  [
    'a name that somebody else has',
    `${provider('base_url: "https://a.example.com/v1"')}models: [{ name: simulator/echo, targets: [{ provider: b }] }]`,
    'models[0].targets[0].provider: There is no provider "b"',
  ],
  [
    'a gateway with an unknown provider',
    'gateways: [{ name: a, providers: [nobody] }]',
    'f.yaml:1:35: gateways[0].providers[0]: There is no provider of this name (gateway "a"). Nothing was changed',
  ],
  ...['team', 'gateway', 'budget', 'token'].map(
    (kind) =>
      [
        `an alert about an unknown ${kind}`,
        `alerts: [{ name: a, condition: ${kind === 'token' || kind === 'budget' ? 'budget_share' : 'refusals'}, scope: { kind: ${kind}, name: nobody } }]`,
        `alerts[0].scope.name: There is no ${kind} "nobody"`,
      ] as const,
  ),
  ...['provider', 'model'].map(
    (kind) =>
      [
        `an alert about an unknown ${kind}`,
        `alerts: [{ name: a, condition: ${kind === 'provider' ? 'error_rate' : 'refusals'}, scope: { kind: ${kind}, name: nobody } }]`,
        `alerts[0].scope.name: There is no ${kind} named "nobody" (alert "a"). Nothing was changed`,
      ] as const,
  ),
  ['pruning without consent', 'teams: []', 'Deleting cannot be undone: repeat with --yes', '--prune'],
  ['a label with a blank', 'teams: [{ name: a }]', '--label takes 1 to 63 letters', '--label', 'a b'],
  ['watching a dry run', 'teams: [{ name: a }]', '--watch applies files', '--watch', '--dry-run'],
]

test.each(mistakes)('%s is told with its place', async (_, text, message, ...flags) => {
  const said = await told(text, ...flags)
  expect(said).toContain(message)
  expect(said).not.toContain('sk-secret')
})

test('several mistakes are told at once, and no secret is repeated', async () => {
  const said = await told(`${provider('base_ur: x')}teams:\n  - {}\n  - { nam: b }\n`)
  expect(said.match(/^(error: )?f\.yaml:\d+:\d+: /gm)).toHaveLength(4)
})

test('the first byte that is no UTF-8 is told with its place', async () => {
  const latin = Buffer.concat([Buffer.from('# \ufffd\nteams:\n  - name: caf'), Uint8Array.of(0xe9, 0x0a)])
  expect(await told(latin)).toContain('f.yaml:3:14: The byte 0xe9 at 26 is no UTF-8: save the file as UTF-8')
})

test('mistakes in TOML are told with their places', async () => {
  const cases = [
    ['[[teams]]\nname = "x\n', 'f.toml:2:10: Newline (0x0A) not allowed in basic strings'],
    ['[[teams]]\nname = "x"\nname = "y"\n', 'f.toml:3:1: Value already defined for teams.name'],
    ['[[teams]]\nname = "x"\n\n[[teams]]\nname = "y"\nnam = 1\n', 'f.toml:6:1: teams[1].nam: is no field'],
    [
      'budgets = [\n  { name = "a", max_budget = 1, window = "day", scope = { kind = "tem" } },\n]\n',
      'f.toml:2:66: budgets[0].scope.kind: Write one of',
    ],
    [
      '[[providers]]\nname = "a"\nkind = "openai"\n[providers.timeouts]\nidle_second = 3\n',
      'f.toml:5:1: providers[0].timeouts.idle_second: is no field: did you mean idle_seconds? (provider "a")',
    ],
    [
      '[[providers]]\nname = "a"\nkind = "openai"\napi_key.env = "NOPE"\n',
      'f.toml:4:1: providers[0].api_key: The environment has no variable NOPE (provider "a")',
    ],
  ] as const
  for (const [text, message] of cases) expect(await toldOf('f.toml', text)).toContain(message)
})

test('what cannot be read at all is told by its name', async () => {
  const cases = [
    [[], 'Name what is to be applied: -f FILE'],
    [['-f', join(folder, 'none.yaml')], 'none.yaml cannot be read: ENOENT'],
    [['-f', join(folder, 'empty')], 'empty has no file that ends with'],
    [['-f', join(folder, 'f.txt')], 'f.txt: name the file .yaml'],
  ] as const
  for (const [args, message] of cases) {
    expect((await operate(gatehouse, 'apply', ...args)).stderr).toContain(message)
  }
  expect((await operate(gatehouse, 'export', '--only', 'team')).stderr).toContain(
    'there is no list team; there are teams,',
  )
  expect((await operate(gatehouse, 'import', 'kong', 'x')).stderr).toContain('use one of litellm, portkey, bifrost')
})
