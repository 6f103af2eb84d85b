import { afterAll, expect, test } from 'bun:test'
import { runCommandLine } from '../../command/command.ts'
import { main } from '../../main.ts'
import { recordingControlPlane } from '../../testing/control-plane.ts'
import { recordingTerminal } from '../../testing/terminal.ts'
import { token } from './token.ts'

const ifMatches: (string | null)[] = []
const record = {
  id: '0190b6f0-0000-7000-8000-000000000001',
  name: 'ci',
  token_prefix: 'gth_AbCdEfGh',
  purpose: 'gateway_runtime',
  status: 'active',
  expires_at: null,
  bindings: { team_id: 't' },
}
const alert = { condition: 'expiring', at: '2026-01-01T00:00:00.000Z', token_id: record.id, name: 'ci' }
const views = { total: 3, by_status: { active: 3 }, by_purpose: { general: 3 }, by_key_class: {}, by_team: [] }
const control = recordingControlPlane(({ method, path, body, headers }) => {
  ifMatches.push(headers.get('if-match'))
  if (path === '/v1/tokens/validate') {
    const valid = JSON.stringify(body).includes('gth_value')
    return valid ? { valid, token_id: record.id } : { valid, reason: 'revoked' }
  }
  if (path === '/v1/tokens/views') return views
  if (path === '/v1/tokens/alerts') return { alerts: [alert], next_cursor: null }
  if (path.endsWith('/emergency-revoke')) return { ...record, proof_event_id: 'proof' }
  if (method === 'POST') return Response.json({ ...record, token_value: 'gth_value' }, { status: 201 })
  if (path === '/v1/tokens') return { tokens: [record], next_cursor: 'more' }
  return method === 'DELETE' ? { ...record, status: 'revoked' } : record
})
const { requests } = control
afterAll(() => control.stop())

async function run(...rawArguments: string[]) {
  requests.length = 0
  ifMatches.length = 0
  const terminal = recordingTerminal({ environment: control.environment })
  const exitCode = await main(['token', ...rawArguments], terminal)
  return { exitCode, out: terminal.written(), notes: terminal.noted() }
}

test("create sends its flags as the API's fields and prints the secret once", async () => {
  const flags = [
    '--name',
    'ci',
    '--purpose',
    'gateway-runtime',
    '--gateway-id',
    'g',
    '--team-id',
    't',
    '--expires-in',
    '30d',
  ]
  const { exitCode, out, notes } = await run('create', ...flags)
  expect(exitCode).toBe(0)
  const body = {
    name: 'ci',
    purpose: 'gateway_runtime',
    bindings: { gateway_id: 'g', team_id: 't' },
    expires_in_seconds: 2_592_000,
  }
  expect(requests).toEqual([{ method: 'POST', target: '/v1/tokens', body }])
  expect(out).toBe('gth_value\n')
  expect(notes).toMatch(/^purpose +gateway_runtime$/m)
  expect(notes).not.toContain('gth_value')
})

test('create --json prints the record', async () => {
  const { out } = await run('create', '--name', 'ci', '--purpose', 'general', '--json')
  expect(requests[0]?.body).toEqual({ name: 'ci', purpose: 'general' })
  expect(JSON.parse(out)).toMatchObject({ id: record.id, token_value: 'gth_value' })
})

test.each([
  [['create', '--purpose', 'general']],
  [['create', '--name', 'ci', '--purpose', 'gateway_runtime']],
  [['create', '--name', 'ci', '--purpose', 'general', '--expires-in', '30']],
  [['create', '--name', 'ci', '--purpose', 'general', '--expires-in', '0d']],
  [['create', '--name', 'ci', '--purpose', 'general', '--key-class', 'throwaway']],
  [['create', '--name', 'ci', '--purpose', 'general', '--max-budget', '1e3']],
  [['create', '--name', 'ci', '--purpose', 'general', '--max-requests', '0']],
  [['create', '--name', 'ci', '--purpose', 'general', '--metadata', 'no-value']],
  [['create', '--name', 'ci', '--purpose', 'general', '--model', 'a,,b']],
  [['create', '--name', 'ci', '--purpose', 'general', '--expires-in', '1d', '--expires-at', '2030-01-01T00:00:00Z']],
  [['rotate', record.id]],
  [['rotate', record.id, '--grace', 'soon']],
  [['update', record.id]],
  [['update', record.id, '--name', 'x', '--if-version', 'latest']],
  [['emergency-revoke', record.id, '--yes']],
  [['emergency-revoke', record.id, '--explanation', 'leaked']],
  [['list', '--key-class', 'throwaway']],
  [['list', '--limit', '999']],
  [['list', '--limit', '0']],
  [['alerts', '--limit', 'many']],
  [['create', '--name', 'ci', '--purpose', 'general', '--role', 'admin,']],
  [['clone', record.id, '--role', 'member']],
  [['list', '--purpose', 'nonsense']],
  [['get']],
  [['delete', record.id]],
])('%p is a usage error and asks nothing of the control plane', async (rawArguments) => {
  expect((await run(...rawArguments)).exitCode).toBe(2)
  expect(requests).toEqual([])
})

test('list prints a table and how to get the next page', async () => {
  const { out, notes } = await run('list', '--purpose', 'gateway-runtime', '--status', 'active', '--limit', '1')
  expect(requests[0]?.target).toBe('/v1/tokens?purpose=gateway_runtime&status=active&limit=1')
  expect(out.split('\n')[1]?.split(/ {2,}/)).toEqual([
    record.id,
    'ci',
    'gateway_runtime',
    'active',
    'gth_AbCdEfGh',
    '-',
  ])
  expect(notes).toContain('--cursor more')
})

test('get prints the record', async () => {
  expect(JSON.parse((await run('get', record.id, '--json')).out)).toEqual(record)
  expect((await run('get', record.id)).out).toMatch(/^bindings\.team_id +t$/m)
})

test('encodes an id, so that it cannot name another path', async () => {
  await run('get', '../../metrics')
  expect(requests[0]?.target).toBe('/v1/tokens/..%2F..%2Fmetrics')
})

test('delete asks for --yes, and revokes with it', async () => {
  expect((await run('delete', record.id)).notes).toContain('--yes')
  const { exitCode, out } = await run('delete', record.id, '--yes')
  expect(exitCode).toBe(0)
  expect(requests).toEqual([{ method: 'DELETE', target: `/v1/tokens/${record.id}`, body: null }])
  expect(out).toMatch(/^status +revoked$/m)
})

const limits = [
  ...['--provider', 'openai', '--model', 'gpt-4o,gpt-4o-mini', '--model', 'o3*', '--gateway-id', 'g', '--team-id', 't'],
  ...['--max-budget', '2.50', '--max-requests', '100', '--rate-limit-rpm', '10', '--rate-limit-tpm', '1000'],
  ...['--metadata', 'cost=a,b', '--metadata', 'note=x=y', '--expires-in', '12h', '--metadata-trust', 'caller'],
  ...['--user-id', 'u', '--budget-id', 'b', '--policy-id', 'p', '--policy-id', 'q', '--access-policy-id', 'a,c'],
]
const limitFields = {
  bindings: {
    ...{ gateway_id: 'g', team_id: 't', user_id: 'u', budget_id: 'b', provider: 'openai' },
    model_filter: ['gpt-4o', 'gpt-4o-mini', 'o3*'],
  },
  policy_ids: ['p', 'q'],
  access_policy_ids: ['a', 'c'],
  metadata_trust: 'caller',
  max_budget: 2.5,
  max_requests: 100,
  rate_limit_rpm: 10,
  rate_limit_tpm: 1000,
  metadata: { cost: 'a,b', note: 'x=y' },
  expires_in_seconds: 43_200,
}

test('create, clone and update take the same limits', async () => {
  await run('create', '--name', 'ci', '--purpose', 'general', '--key-class', 'disposable', ...limits)
  const made = { name: 'ci', purpose: 'general', key_class: 'disposable' }
  expect(requests).toEqual([{ method: 'POST', target: '/v1/tokens', body: { ...made, ...limitFields } }])
  const cloned = await run('clone', record.id, '--reason', 'for the night', ...limits)
  const body = { reason: 'for the night', ...limitFields }
  expect(requests).toEqual([{ method: 'POST', target: `/v1/tokens/${record.id}/clone`, body }])
  expect(cloned.out).toBe('gth_value\n')
  const updated = await run('update', record.id, '--name', 'new', '--if-version', '7', ...limits)
  const change = { name: 'new', ...limitFields }
  expect(requests).toEqual([{ method: 'PATCH', target: `/v1/tokens/${record.id}`, body: change }])
  expect(ifMatches).toEqual(['"7"'])
  expect(updated.out).toMatch(/^name +ci$/m)
})

test('create and update send roles, and views shows counts', async () => {
  await run('create', '--name', 'ci', '--purpose', 'general', '--role', 'operator', '--role', 'member')
  expect(requests[0]?.body).toEqual({ name: 'ci', purpose: 'general', roles: ['operator', 'member'] })
  await run('update', record.id, '--role', 'member')
  expect(requests[0]?.body).toEqual({ roles: ['member'] })
  const { out } = await run('views', '--json')
  expect(JSON.parse(out)).toEqual(views)
  expect((await run('views')).out).toMatch(/^by_status\.active +3$/m)
})

test('sends no limits for a clone without them, and no version for an update without one', async () => {
  await run('clone', record.id)
  expect(requests[0]?.body).toEqual({})
  await run('update', record.id, '--expires-at', '2030-01-01T00:00:00Z')
  expect(requests[0]?.body).toEqual({ expires_at: '2030-01-01T00:00:00Z' })
  expect(ifMatches).toEqual([null])
})

test('rotate takes a grace period or --yes', async () => {
  const graceful = await run('rotate', record.id, '--grace', '15m')
  const target = `/v1/tokens/${record.id}/rotate`
  expect(requests).toEqual([{ method: 'POST', target, body: { grace_period_seconds: 900 } }])
  expect(graceful.out).toBe('gth_value\n')
  expect(graceful.notes).not.toContain('gth_value')
  const atOnce = await run('rotate', record.id, '--yes', '--json')
  expect(requests).toEqual([{ method: 'POST', target, body: {} }])
  expect(JSON.parse(atOnce.out)).toMatchObject({ token_value: 'gth_value' })
})

test('emergency-revoke sends the explanation and shows the record', async () => {
  const { out } = await run('emergency-revoke', record.id, '--explanation', 'It was in a log', '--yes')
  const target = `/v1/tokens/${record.id}/emergency-revoke`
  expect(requests).toEqual([{ method: 'POST', target, body: { explanation: 'It was in a log' } }])
  expect(out).toMatch(/^proof_event_id +proof$/m)
  await run('emergency-revoke', record.id, '--explanation', 'Stolen', '--revoke-active-sessions', '--yes')
  expect(requests[0]?.body).toEqual({ explanation: 'Stolen', revoke_active_sessions: true })
})

test('list sends every filter, and alerts prints a table', async () => {
  await run('list', '--name', 'a b', '--key-class', 'virtual', '--team-id', 't', '--gateway-id', 'g', '--cursor', 'c')
  expect(requests[0]?.target).toBe('/v1/tokens?name=a+b&key_class=virtual&team_id=t&gateway_id=g&cursor=c')
  const { out } = await run('alerts')
  expect(out.split('\n')[1]?.split(/ {2,}/)).toEqual(['expiring', alert.at, record.id, 'ci'])
  expect(JSON.parse((await run('alerts', '--json')).out)).toEqual({ alerts: [alert], next_cursor: null })
})

test('validate reads the secret without showing it, and fails if it is not usable', async () => {
  const validate = async (secret: string) => {
    const terminal = recordingTerminal({ environment: control.environment })
    const line = () => Promise.resolve(secret)
    const group = token(terminal, { interactive: false, line, hiddenLine: line })
    const error = await runCommandLine(group, ['validate', '--json'], terminal).catch((thrown: unknown) => thrown)
    return { error, out: JSON.parse(terminal.written()), notes: terminal.noted() }
  }
  expect(await validate('gth_value')).toEqual({
    error: undefined,
    out: { valid: true, token_id: record.id },
    notes: '',
  })
  const refused = await validate('gth_other')
  expect(refused.error).toBeInstanceOf(Error)
  expect(refused.out).toEqual({ valid: false, reason: 'revoked' })
})
