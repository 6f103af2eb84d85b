/** Configuration as code against the real control plane: apply, export, and that one takes back what the other writes. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
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
budgets:
  - { name: all, max_budget: 1000, window: month, scope: { kind: organization } }
  - { name: research, max_budget: 12.5, window: day, scope: { kind: team, name: research } }
  - { name: ada, max_budget: 3, window: week, scope: { kind: user, name: ada@example.com } }
consumer_groups:
  - { name: heavy, tokens_per_minute: 100000, members: { teams: [research], users: [ada@example.com] } }
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
`

test('applies every kind of record with references by name, and changes nothing the second time', async () => {
  file('key.txt', 'sk-of-the-provider\n')
  const path = file('everything.yaml', everything)
  const first = await operate(gatehouse, 'apply', '-f', path)
  expect(first).toMatchObject({ code: 0, stderr: '' })
  expect(first.stdout.match(/^\+ /gm)).toHaveLength(20)
  const second = await operate(gatehouse, 'apply', '-f', path)
  expect(second).toMatchObject({ code: 0, stderr: '' })
  expect(second.stdout).toBe(first.stdout.replaceAll(/^\+/gm, '='))
})

test('writes what exists so that applying it changes nothing', async () => {
  const written = await operate(gatehouse, 'export', '-o', 'yaml')
  expect(written).toMatchObject({ code: 0 })
  expect(written.stdout).not.toContain('sk-of-the-provider')
  const applied = await operate(gatehouse, 'apply', '-f', file('export.yaml', written.stdout))
  expect(applied.stdout).not.toMatch(/^[+~-]/m)
  expect(applied).toMatchObject({ code: 0, stderr: '' })
  expect((await operate(gatehouse, 'export')).stdout).toBe(written.stdout)
})
