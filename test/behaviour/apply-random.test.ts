/** Random installations: what export writes, apply takes back without a change, and a file is what is there afterwards. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { stringify } from 'yaml'
import { runCommandLine } from '../../cli/command/command.ts'
import { applyCommand } from '../../cli/commands/apply/apply.ts'
import { exportCommand } from '../../cli/commands/export/export.ts'
import { recordingTerminal } from '../../cli/testing/terminal.ts'
import { type Gatehouse, startGatehouse } from '../support/harness.ts'

let gatehouse: Gatehouse
const folder = mkdtempSync(join(tmpdir(), 'apply-random-'))
beforeAll(async () => {
  gatehouse = await startGatehouse()
}, 60_000)
afterAll(async () => {
  await gatehouse.stop()
  rmSync(folder, { recursive: true })
})

const terminal = () =>
  recordingTerminal({
    environment: {
      SERVICE_API_URL: gatehouse.baseUrl,
      SERVICE_API_TOKEN: gatehouse.adminToken,
      XDG_CONFIG_HOME: folder,
      KEY: 'sk-random',
    },
  })

async function apply(text: string, ...flags: string[]): Promise<string> {
  const path = join(folder, 'file.yaml')
  writeFileSync(path, text)
  const to = terminal()
  await runCommandLine(applyCommand(to), ['-f', path, ...flags], to)
  return to.written()
}
async function exported(): Promise<string> {
  const to = terminal()
  await runCommandLine(exportCommand(to), [], to)
  return to.written()
}

/** Names that YAML or a shell could read as something else. */
const freeNames = [
  'yes',
  'null',
  '1e3',
  '0x10',
  '~',
  'a: b',
  '#x',
  '- y',
  "it's",
  '"q"',
  'Ünïcode 名',
  '2026-01-01',
  '{a}',
  '[b]',
  '*c',
  '&d',
  '!e',
  '%f',
  '@g',
  '`h`',
  'true',
  '12:30:45',
  'x '.trim(),
]
const recordNames = ['yes', 'null', '1e3', '0x10', 'true', 'a.b-c_d', '2026-01-01', 'No', '1_000', '007']
const some = <Value>(from: readonly Value[], most = 3) =>
  fc.subarray([...from], { maxLength: Math.min(most, from.length) })
const rates = {
  requests_per_minute: fc.option(fc.integer({ min: 1, max: 1e9 }), { nil: undefined }),
  tokens_per_minute: fc.option(fc.integer({ min: 1, max: 1e9 }), { nil: undefined }),
}
const price = fc.option(
  fc.record({
    input_per_million: fc.integer({ min: 0, max: 50 }),
    output_per_million: fc.integer({ min: 0, max: 99 }),
  }),
  { nil: undefined },
)
const each = <Entry>(names: readonly string[], entry: (name: string) => fc.Arbitrary<Entry>) =>
  fc.tuple(...names.map(entry))

const installation = fc
  .record({
    teams: some(freeNames),
    people: some(['ada@example.com', 'Bob+1@example.com', "o'neil@example.com"]),
    providers: some(recordNames),
    models: some(['team/large', '1e3', 'yes', 'a:b@c+d']),
    gateways: some(recordNames),
    limits: some(freeNames),
    servers: some(['search', 'yes', 'x-1']),
    policies: some(freeNames),
    settings: some(recordNames),
  })
  .chain(({ teams, people, providers, models, ...names }) =>
    fc.record({
      teams: fc.constant(['default', ...teams].map((name) => ({ name }))),
      users: each(people, (email) =>
        fc.record({
          email: fc.constant(email),
          name: fc.constantFrom(...freeNames),
          role: fc.constantFrom('member', 'operator', 'auditor'),
          status: fc.constantFrom('active', 'disabled'),
          teams: some(teams),
        }),
      ),
      providers: each(providers, (name) =>
        fc.record({
          name: fc.constant(name),
          kind: fc.constantFrom('openai', 'anthropic', 'gemini'),
          base_url: fc.constantFrom(
            undefined,
            'https://llm.example.com/v1/',
            'https://LLM.example.com:443/a b'.replace(' ', '%20'),
          ),
          api_key: fc.constantFrom(undefined, { env: 'KEY' }),
          headers: fc.constantFrom(undefined, {}, { 'X-A': { env: 'KEY' }, 'x-b': { env: 'KEY' } }),
          allow_unlisted_models: fc.constantFrom(undefined, true, false),
          default_price: price,
          timeouts: fc.constantFrom(undefined, { idle_seconds: 9 }, { connect_seconds: 1, total_seconds: 5 }),
        }),
      ),
      models: each(providers.length === 0 ? [] : models, (name) =>
        fc.record({
          name: fc.constant(name),
          targets: fc.array(
            fc.record({
              provider: fc.constantFrom(...providers),
              upstream_model: fc.constantFrom('large', 'v2'),
              weight: fc.integer({ min: 1, max: 9 }),
              tier: fc.integer({ min: 1, max: 3 }),
            }),
            { minLength: 1, maxLength: 1 },
          ),
          strategy: fc.constantFrom(undefined, 'priority', 'weighted', 'lowest_cost'),
          fallbacks: some(models.filter((other) => other !== name)),
          price,
          max_output_tokens: fc.constantFrom(undefined, 100),
          translation: fc.constantFrom(undefined, 'strict', 'lenient'),
        }),
      ),
      gateways: each(names.gateways, (name) =>
        fc.record({
          name: fc.constant(name),
          spend_owner: fc.constantFrom(
            undefined,
            'organization',
            ...teams.map((team) => `team:${team}`),
            ...people.map((one) => `user:${one.toLowerCase()}`),
          ),
          prompt_caching: fc.boolean(),
          providers: providers.length === 0 ? fc.constant(undefined) : fc.constantFrom(undefined, [providers[0]]),
        }),
      ),
      access_policies: each(names.limits, (name) =>
        fc.record({
          name: fc.constant(name),
          ...rates,
          scope: fc.constantFrom('token', 'shared'),
          models: fc.constantFrom(undefined, null, ['*', 'a/*']),
        }),
      ),
      budgets: each(names.limits, (name) =>
        fc.record({
          name: fc.constant(name),
          max_budget: fc.constantFrom(0.000000001, 12.5, 1e6),
          window: fc.constantFrom('day', 'week', 'month', 'total'),
          scope: fc.constantFrom(
            { kind: 'organization' },
            { kind: 'token' },
            ...teams.map((team) => ({ kind: 'team', name: team })),
            ...people.map((one) => ({ kind: 'user', name: one.toLowerCase() })),
          ),
        }),
      ),
      consumer_groups: each(names.limits, (name) =>
        fc.record({
          name: fc.constant(name),
          ...rates,
          members: fc.record({ teams: some(teams), users: some(people.map((one) => one.toLowerCase())) }),
        }),
      ),
      mcp_servers: each(names.servers, (name) =>
        fc.constantFrom(
          { name, url: 'https://mcp.example.com/mcp', headers: { 'X-Key': { env: 'KEY' } }, approval: 'required' },
          { name, command: { program: 'npx', args: ['-y', 'yes', '1e3'] }, environment: { TOKEN: { env: 'KEY' } } },
          { name, url: 'https://mcp.example.com/mcp', enabled: false, timeouts: { idle_seconds: 3 } },
          {
            name,
            url: 'https://mcp.example.com/mcp',
            oauth: { token_url: 'https://l.example.com/t', client_id: 'a', client_secret: { env: 'KEY' }, scope: 'x' },
          },
        ),
      ),
      policies: each(names.policies, (name) =>
        fc.record({
          name: fc.constant(name),
          kind: fc.constant('term-filter'),
          stages: fc.constantFrom(['pre_request'], ['pre_request', 'post_request']),
          targets: fc.constantFrom({}, { models: ['a/*'] }, ...teams.map((team) => ({ teams: [team] }))),
          when: fc.constantFrom(undefined, null, 'request.model == "a"'),
          mode: fc.constantFrom(undefined, 'monitor'),
          config: fc.record({
            terms: fc.constantFrom(['yes'], ['null', '1e3', 'a: b']),
            action: fc.constantFrom('block', 'redact'),
          }),
        }),
      ),
      managed_settings: each(names.settings, (name) =>
        fc.record({
          name: fc.constant(name),
          settings: fc.dictionary(fc.constantFrom('a', 'yes', '1e3'), fc.jsonValue()),
          teams: some(teams),
          priority: fc.integer({ min: 0, max: 9 }),
        }),
      ),
    }),
  )

const lists = 'users providers models access_policies budgets consumer_groups mcp_servers policies managed_settings'
const nothing = stringify({
  teams: [{ name: 'default' }],
  gateways: [{ name: 'local' }],
  ...Object.fromEntries(lists.split(' ').map((list) => [list, []])),
})

test('an export is taken back unchanged, and a file with --prune is what is there', async () => {
  await fc.assert(
    fc.asyncProperty(installation, async (wanted) => {
      // The installation's own gateway has a token in force.
      const all = { ...wanted, gateways: [{ name: 'local' }, ...wanted.gateways] }
      const text = stringify(JSON.parse(JSON.stringify(all)))
      // What cannot change, such as the kind of a provider, may differ from the installation before.
      await apply(nothing, '--prune', '--yes')
      await apply(text, '--prune', '--yes')
      expect(await apply(text, '--prune', '--yes')).not.toMatch(/^[+~-]/m)
      const written = await exported()
      expect(await apply(written)).not.toMatch(/^[+~-]/m)
      expect(await exported()).toBe(written)
    }),
    { numRuns: 25 },
  )
}, 120_000)
