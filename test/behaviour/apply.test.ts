/** Configuration as code against the real control plane: apply, export, and that one takes back what the other writes. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { until } from '../support/eventually.ts'
import { type Gatehouse, operate, startGatehouse } from '../support/harness.ts'

let gatehouse: Gatehouse
const folder = mkdtempSync(join(tmpdir(), 'apply-'))
beforeAll(async () => {
  gatehouse = await startGatehouse()
}, 60_000)
afterAll(async () => {
  await gatehouse.stop()
  rmSync(folder, { recursive: true })
})

const file = (name: string, text: string): string => {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}

const everything = `
teams:
  - name: platform
  - name: research
users:
  - { email: Ada@example.com, name: Ada, role: operator, teams: [platform, research] }
  - { email: bob@example.com, name: Bob, status: disabled }
providers:
  - { name: main, kind: openai, base_url: "http://127.0.0.1:9/v1/", api_key: { file: key.txt }, headers: { X-Org: { command: [echo, org] } } }
  - { preset: groq, api_key: { file: key.txt }, default_price: { input_per_million: 1, output_per_million: 2 } }
models:
  - name: team/large
    targets: [{ provider: main, upstream_model: large }, { provider: groq, tier: 2 }]
    fallbacks: [small]
    price: { input_per_million: 3, output_per_million: 9 }
    shadow: { provider: groq, upstream_model: other, share: 5 }
  - name: small
    targets: [{ provider: groq }]
gateways:
  - { name: edge, spend_owner: "team:platform", providers: [main] }
  - { name: lab, spend_owner: "user:ada@example.com" }
access_policies:
  - { name: careful, requests_per_minute: 60, models: ["team/*"], providers: [main] }
  - { name: each-customer, requests_per_minute: 6, scope: shared, per: customer }
dimensions:
  - { name: customer, source: { kind: header, key: x-customer-id }, max_values: 500 }
  - { name: feature, source: { kind: token_metadata, key: feature }, values: [search, "a=b, c"], required: true }
budgets:
  - { name: each customer, max_budget: 5, window: month, scope: { kind: organization }, per: customer }
  - { name: all, max_budget: 1000, window: month, scope: { kind: organization } }
  - { name: research, max_budget: 12.5, window: day, scope: { kind: team, name: research } }
  - { name: ada, max_budget: 3, window: week, scope: { kind: user, name: ada@example.com } }
  - { name: searching, max_budget: 2, window: day, scope: { kind: mcp_server, name: search } }
  - { name: one tool, max_budget: 1, window: day, scope: { kind: mcp_server, name: search, tool: look_up } }
consumer_groups:
  - { name: heavy, tokens_per_minute: 100000, members: { teams: [research], users: [ada@example.com] } }
  - { name: each feature, requests_per_minute: 100, members: { teams: [research] }, per: feature }
oauth_clients:
  - { client_id: notes, client_name: Notes, scope: "gateway:invoke", redirect_uris: ["http://127.0.0.1/callback"] }
  - { client_id: old-notes, client_name: Old, scope: "gateway:invoke", redirect_uris: ["http://127.0.0.1/callback"], status: deactivated }
mcp_servers:
  - { name: search, url: "https://mcp.example.com/mcp", headers: { Authorization: { file: key.txt } }, approval: required }
policies:
  - name: no-swordfish
    kind: term-filter
    stages: [pre_request]
    targets: { teams: [platform], gateways: [edge] }
    config: { terms: [swordfish], action: block }
managed_settings:
  - { name: agents, settings: { permissions: { deny: [WebSearch] } }, teams: [platform] }
sinks:
  - { name: siem, kind: splunk, url: "https://splunk.example.com:8088", splunk: { index: audit }, credentials: { token: { file: key.txt } } }
  - { name: archive, kind: s3, url: "https://s3.example.com", enabled: false, start: beginning, s3: { bucket: record }, credentials: { access_key_id: { file: key.txt }, secret_access_key: { file: key.txt } } }
  - { name: collector, kind: http, url: "https://in.example.com/events", format: events, filter: 'event.verdict != "allow"', credentials: { headers: { X-Key: { file: key.txt } } } }
alert_channels:
  - { name: on-call, kind: webhook, url: { command: [echo, "https://hooks.example.com/a/sk-of-the-provider"] }, signing_secret: { command: [echo, whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA] } }
  - { name: pager, kind: pagerduty, routing_key: { command: [echo, abcdefghijklmnopqrstuvwxyz012345] } }
  - { name: mail, kind: email, smtp_host: smtp.example.com, smtp_username: gatehouse, smtp_password: { file: key.txt }, mail_from: gatehouse@example.com, mail_to: [ann@example.com] }
alerts:
  - { name: refused, condition: refusals, reasons: ["policy.*"], scope: { kind: team, name: platform }, channels: [on-call, pager] }
  - { name: money, condition: budget_share, scope: { kind: budget, name: all }, thresholds: [50, 80, 100], severity: critical }
  - { name: slow-sink, condition: sink_lag, thresholds: [900], quiet_minutes: 0, enabled: false }
`

test('applies every kind of record with references by name, and changes nothing the second time', async () => {
  file('key.txt', 'sk-of-the-provider\n')
  const path = file('everything.yaml', everything)
  const first = await operate(gatehouse, 'apply', '-f', path)
  expect(first).toMatchObject({ code: 0, stderr: '' })
  expect(first.stdout.match(/^\+ /gm)).toHaveLength(36)
  const second = await operate(gatehouse, 'apply', '-f', path)
  expect(second).toMatchObject({ code: 0, stderr: '' })
  expect(second.stdout).toBe(first.stdout.replaceAll(/^\+/gm, '='))
})

test('writes what exists so that applying it changes nothing', async () => {
  const written = await operate(gatehouse, 'export', '-o', 'yaml')
  expect(written).toMatchObject({ code: 0 })
  expect(written.stdout).not.toContain('sk-of-the-provider')
  expect(written.stdout).toContain('kind: mcp_server\n      name: search\n      tool: look_up\n')
  const applied = await operate(gatehouse, 'apply', '-f', file('export.yaml', written.stdout))
  expect(applied.stdout).not.toMatch(/^[+~-]/m)
  expect(applied).toMatchObject({ code: 0, stderr: '' })
  expect((await operate(gatehouse, 'export')).stdout).toBe(written.stdout)
})

test('takes a dimension away with the limits for its values, and names a limit that a file leaves', async () => {
  const dimension = '{ name: plan, source: { kind: jwt_claim, key: plan } }'
  const budget = '{ name: each plan, max_budget: 1, window: day, scope: { kind: token }, per: plan }'
  const path = file('plan.yaml', `dimensions: [${dimension}]\nbudgets: [${budget}]\n`)
  const applied = await operate(gatehouse, 'apply', '-f', path, '--label', 'plans')
  expect(applied).toMatchObject({ code: 0, stderr: '' })
  const renamed = budget.replace('per: plan', 'per: customer')
  const changed = file('changed.yaml', `dimensions: [${dimension}]\nbudgets: [${renamed}]\n`)
  const refused = await operate(gatehouse, 'apply', '-f', changed, '--label', 'plans')
  expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('which cannot be changed to')])
  const unknown = file(
    'unknown.yaml',
    `budgets: [${budget.replace('each plan', 'x').replace('per: plan', 'per: none')}]\n`,
  )
  expect((await operate(gatehouse, 'apply', '-f', unknown)).stderr).toContain(
    '1:79: budgets[0].per: There is no dimension none',
  )
  const without = file('without.yaml', 'dimensions: []\n')
  const kept = await operate(gatehouse, 'dimension', 'delete', 'plan', '--yes')
  expect([kept.code, kept.stderr]).toEqual([1, expect.stringContaining('the budget each plan')])
  const pruned = await operate(gatehouse, 'apply', '-f', without, '--label', 'plans', '--prune', '--yes')
  expect(pruned).toMatchObject({ code: 0, stderr: '' })
  expect(pruned.stdout).toContain('- dimension plan')
  expect(pruned.stdout).toContain('- budget each plan')
})

test('get -o yaml writes one record as a file for apply, and a token as it is', async () => {
  const written = await operate(gatehouse, 'policy', 'get', 'no-swordfish', '-o', 'yaml')
  expect(written.stdout).toContain('policies:\n  - name: no-swordfish\n')
  const applied = await operate(gatehouse, 'apply', '-f', file('one.yaml', written.stdout))
  expect(applied).toMatchObject({ code: 0, stdout: '= policy no-swordfish\n' })
  const provider = await operate(gatehouse, 'provider', 'get', 'main', '--output', 'yaml')
  expect(provider.stdout).toContain('api_key:\n      env: PROVIDER_MAIN_API_KEY\n')
  await operate(gatehouse, 'token', 'create', '--name', 'app', '--purpose', 'general')
  expect((await operate(gatehouse, 'token', 'get', 'app', '-o', 'yaml')).stdout).toContain('\nname: app\n')
  expect(JSON.parse((await operate(gatehouse, 'token', 'get', 'app', '-o', 'json')).stdout)).toMatchObject({
    name: 'app',
  })
})

test('takes a file whose alert names a token that ended, as long as it leaves the alert as it is', async () => {
  await operate(gatehouse, 'token', 'create', '--name', 'brief', '--purpose', 'general')
  const alert = (name: string, quiet: number) =>
    `alerts: [{ name: ${name}, condition: refusals, scope: { kind: token, name: brief }, quiet_minutes: ${quiet} }]\n`
  const apply = (text: string) => operate(gatehouse, 'apply', '-f', file('brief.yaml', text))
  expect(await apply(alert('brief', 5))).toMatchObject({ code: 0, stdout: expect.stringContaining('+ alert brief') })
  expect(await operate(gatehouse, 'token', 'delete', 'brief', '--yes')).toMatchObject({ code: 0 })
  expect(await apply(alert('brief', 5))).toMatchObject({ code: 0, stdout: '= alert brief\n', stderr: '' })
  expect(await apply(alert('brief', 6))).toMatchObject({ code: 0, stdout: expect.stringContaining('~ alert brief') })
  const written = (await operate(gatehouse, 'export', '--only', 'alerts')).stdout
  const again = await apply(written)
  expect([again.code, again.stdout]).toEqual([0, expect.stringContaining('= alert brief\n')])
  expect(again.stdout).not.toMatch(/^[+~-]/m)
  expect((await apply(alert('other', 5))).stderr).toContain('There is no token "brief"')
  expect(await operate(gatehouse, 'alert', 'delete', 'brief', '--yes')).toMatchObject({ code: 0 })
})

test('a list says that there is more, and --all lists all pages', async () => {
  const names = Array.from({ length: 130 }, (_, index) => `many-${index}`)
  const text = `teams:\n${names.map((name) => `  - name: ${name}\n`).join('')}`
  expect(await operate(gatehouse, 'apply', '-f', file('many.yaml', text))).toMatchObject({ code: 0 })
  const first = await operate(gatehouse, 'team', 'list')
  expect(first.stdout.match(/many-/g)?.length).toBeLessThan(130)
  expect(first.stderr).toContain('More: add --all, or --cursor ')
  const all = await operate(gatehouse, 'team', 'list', '--all')
  expect([all.stdout.match(/many-/g)?.length, all.stderr]).toEqual([130, ''])
  const json = await operate(gatehouse, 'team', 'list', '--all', '--json')
  expect([json.stdout.match(/"many-/g)?.length, JSON.parse(json.stdout).next_cursor]).toEqual([130, null])
})

const teamsNamed = async (prefix: string): Promise<string[]> =>
  (await operate(gatehouse, 'team', 'list', '--all', '--json')).stdout.match(new RegExp(`"${prefix}[^"]*"`, 'g')) ?? []

test('takes values by YAML aliases and merge keys', async () => {
  const text = `
teams: [{ name: &team aliased }]
budgets:
  - &budget { name: aliased, max_budget: 1, window: day, scope: { kind: team, name: *team } }
  - { <<: *budget, name: merged, max_budget: 2 }
`
  const path = file('aliases.yaml', text)
  expect(await operate(gatehouse, 'apply', '-f', path)).toMatchObject({ code: 0, stderr: '' })
  expect((await operate(gatehouse, 'export', '--only', 'budgets')).stdout).toMatch(
    /name: merged\n {4}max_budget: 2\n {4}window: day\n {4}scope:\n {6}kind: team\n {6}name: aliased\n/,
  )
})

test('changes nothing where one record of a file is refused, people and teams too', async () => {
  const text = `
teams: [{ name: half-way }]
users: [{ email: half@example.com, name: Half, teams: [half-way] }]
budgets: [{ name: half-way, max_budget: 1, window: day, scope: { kind: team, name: half-way } }]
gateways: [{ name: half-way, providers: [nobody] }]
`
  const refused = await operate(gatehouse, 'apply', '-f', file('half.yaml', text))
  expect(refused.code).toBe(1)
  expect(refused.stderr).toContain(
    'half.yaml:5:42: gateways[0].providers[0]: There is no provider of this name (gateway "half-way"). Nothing',
  )
  expect(await teamsNamed('half')).toEqual([])
  expect((await operate(gatehouse, 'user', 'list')).stdout).not.toContain('half@example.com')
})

test('makes all of a file or nothing when the control plane is killed meanwhile', async () => {
  const outcomes = new Set<number>()
  for (const [trial, wait] of [40, 120, 220, 360].entries()) {
    const text = `teams: [${Array.from({ length: 20 }, (_, index) => `{ name: kill${trial}-${index} }`)}]
access_policies: [${Array.from({ length: 20 }, (_, index) => `{ name: kill${trial}-${index}, requests_per_minute: 5 }`)}]
`
    const applying = operate(gatehouse, 'apply', '-f', file(`kill${trial}.yaml`, text))
    await Bun.sleep(wait)
    process.kill(gatehouse.controlPlanePid(), 'SIGKILL')
    await applying
    const counted = async () => {
      const policies = await operate(gatehouse, 'export', '--only', 'teams,access_policies')
      return [policies.code, policies.stdout.match(new RegExp(`name: kill${trial}-`, 'g'))?.length ?? 0]
    }
    // What was interrupted is finished when it is more than five seconds old.
    await until('all is there or nothing', async () => {
      const [code, count] = await counted()
      return code === 0 && (count === 0 || count === 40)
    })
    outcomes.add((await counted())[1] ?? -1)
  }
  expect([...outcomes].filter((count) => count !== 0 && count !== 40)).toEqual([])
}, 90_000)

test('two that apply at once leave what one of them says', async () => {
  const policy = (name: string, rate: number) =>
    `access_policies:\n  - { name: ${name}, requests_per_minute: ${rate} }\n`
  const both = await Promise.all(
    [1, 2].map((rate) => operate(gatehouse, 'apply', '-f', file(`both${rate}.yaml`, policy('raced', rate)))),
  )
  // The one that comes second finds the record there, or is refused.
  expect(both.some(({ code }) => code === 0)).toBe(true)
  for (const { code, stderr } of both) {
    if (code !== 0) expect(stderr).toMatch(/There is another access policy of this name|conflict/)
  }
  const again = await Promise.all(
    [3, 4].map((rate) => operate(gatehouse, 'apply', '-f', file(`both${rate}.yaml`, policy('raced', rate)))),
  )
  expect(again.some(({ code }) => code === 0)).toBe(true)
  const shown = await operate(gatehouse, 'export', '--only', 'access_policies')
  expect(shown.stdout.match(/name: raced/g)).toHaveLength(1)
  expect(shown.stdout).toMatch(/name: raced\n {4}requests_per_minute: [34]/)
})

test('--prune with a label deletes what carries it and no file names, and nothing of others', async () => {
  const team = (...names: string[]) => `teams: [${names.map((name) => `{ name: ${name} }`)}]\n`
  const run = (text: string, ...flags: string[]) =>
    operate(gatehouse, 'apply', '-f', file('label.yaml', text), ...flags)
  const policy = 'access_policies: [{ name: label-a, requests_per_minute: 1 }]\n'
  expect((await run(`${team('label-a', 'label-b')}${policy}`, '--label', 'a')).code).toBe(0)
  expect((await run(team('label-c'), '--label', 'c')).code).toBe(0)
  expect((await run(team('label-d'))).code).toBe(0)
  const foreign = await run(team('label-c'), '--label', 'a')
  expect(foreign).toMatchObject({ code: 2, stderr: expect.stringContaining('belongs to files with the label c') })
  const pruned = await run(team('label-b'), '--label', 'a', '--prune', '--yes')
  expect(pruned).toMatchObject({ code: 0, stdout: '= team label-b\n- access policy label-a\n- team label-a\n' })
  expect((await teamsNamed('label-')).toSorted()).toEqual(['"label-b"', '"label-c"', '"label-d"'])
  // A record that was there before is taken under the label, and given up with it.
  expect((await run(team('label-b', 'label-d'), '--label', 'a')).stdout).toBe('= team label-b\n= team label-d\n')
  expect((await run(team('label-b'), '--label', 'a', '--prune', '--yes')).stdout).toContain('- team label-d')
})

test('an export makes another installation the same', async () => {
  const written = (await operate(gatehouse, 'export')).stdout
  const names = [...written.matchAll(/env: (\w+)/g)].map(([, name = '']) => name)
  await using other = await startGatehouse()
  file('url.txt', 'https://hooks.example.com/other')
  file('signing_secret.txt', `whsec_${'B'.repeat(32)}`)
  file('routing_key.txt', 'B'.repeat(32))
  const placeOf = (name: string) =>
    `file: ${/(URL|SIGNING_SECRET|ROUTING_KEY)$/.exec(name)?.[1]?.toLowerCase() ?? 'key'}.txt`
  const path = file(
    'other.yaml',
    written.replaceAll(/env: (\w+)/g, (_, name: string) => placeOf(name)),
  )
  expect(names.length).toBeGreaterThan(2)
  expect(await operate(other, 'apply', '-f', path)).toMatchObject({ code: 0, stderr: '' })
  expect((await operate(other, 'export')).stdout.split('\n').toSorted()).toEqual(written.split('\n').toSorted())
}, 60_000)
