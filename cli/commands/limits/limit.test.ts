import { afterAll, beforeEach, expect, test } from 'bun:test'
import { type Command, runCommandLine } from '../../command/command.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import { recordingControlPlane } from '../../testing/control-plane.ts'
import { recordingTerminal } from '../../testing/terminal.ts'
import { accessPolicy } from './access-policy.ts'
import { budget } from './budget.ts'
import { consumerGroup } from './consumer-group.ts'

const record = { id: 'b1', name: 'Research', max_budget: 5, window: 'month', scope: { kind: 'organization', id: null } }
const control = recordingControlPlane(({ method, path }) =>
  method === 'GET' && path === '/v1/budgets' ? { budgets: [record], next_cursor: null } : record,
)
const { requests } = control
afterAll(() => control.stop())
beforeEach(() => {
  requests.length = 0
})

async function run(group: (terminal: Terminal) => Command, ...rawArguments: string[]): Promise<string> {
  const terminal = recordingTerminal({ environment: control.environment })
  await runCommandLine(group(terminal), rawArguments, terminal)
  return terminal.written()
}

test('creates a budget for the scope that the flags name, by default the organization', async () => {
  await run(
    budget,
    'create',
    '--name',
    'Research',
    '--max-budget',
    '12.50',
    '--scope',
    'team',
    '--scope-id',
    't1',
    '--window',
    'day',
  )
  expect(requests).toEqual([
    {
      method: 'POST',
      target: '/v1/budgets',
      body: { name: 'Research', max_budget: 12.5, window: 'day', scope: { kind: 'team', id: 't1' } },
    },
  ])
  await run(budget, 'create', '--name', 'All', '--max-budget', '1')
  expect(requests[1]?.body).toEqual({ name: 'All', max_budget: 1, window: 'month', scope: { kind: 'organization' } })
  const other = run(budget, 'create', '--name', 'x', '--max-budget', '1', '--scope', 'everybody')
  await expect(other).rejects.toThrow('--scope takes organization, team, user, token')
})

test('lists budgets with their scopes', async () => {
  const listed = await run(budget, 'list')
  expect(listed).toContain('Research')
  expect(listed).toContain('kind=organization')
  expect(listed).not.toContain('{')
  await expect(run(budget, 'list', '--limit', '101')).rejects.toThrow('--limit')
})

test('refuses a change without a field and a deletion without --yes', async () => {
  await expect(run(budget, 'update', 'b1')).rejects.toThrow('at least one field')
  await expect(run(budget, 'delete', 'b1')).rejects.toThrow('--yes')
  await run(budget, 'update', 'b1', '--max-budget', '3')
  await run(budget, 'delete', 'b1', '--yes')
  expect(requests.map(({ method, body }) => [method, body])).toEqual([
    ['PATCH', { max_budget: 3 }],
    ['DELETE', null],
  ])
})

test('clears fields of a limit by name', async () => {
  await run(accessPolicy, 'update', 'p1', '--clear', 'models', '--clear', 'tokens-per-minute')
  await run(consumerGroup, 'update', 'g1', '--clear', 'requests-per-minute')
  expect(requests.map(({ body }) => body)).toEqual([
    { models: null, tokens_per_minute: null },
    { requests_per_minute: null },
  ])
  await expect(run(consumerGroup, 'update', 'g1', '--clear', 'members')).rejects.toThrow(
    '--clear takes requests-per-minute',
  )
})

test('creates a consumer group with rates and members, and an access policy with rates, models and providers', async () => {
  const rates = ['--requests-per-minute', '5', '--tokens-per-minute', '900']
  await run(consumerGroup, 'create', '--name', 'g', ...rates, '--user-id', 'u1', '--user-id', 'u2')
  const uses = ['--model', 'gpt-*,o3', '--provider', 'openai']
  await run(accessPolicy, 'create', '--name', 'p', ...rates, '--scope', 'shared', ...uses)
  const both = { requests_per_minute: 5, tokens_per_minute: 900 }
  expect(requests.map(({ body }) => body)).toEqual([
    { name: 'g', ...both, members: { users: ['u1', 'u2'] } },
    { name: 'p', ...both, scope: 'shared', models: ['gpt-*', 'o3'], providers: ['openai'] },
  ])
})

test('lists the values of a budget, or asks for one', async () => {
  const shown = { value: 'acme', account: 'budget/b1/0', spend: 1.5, remaining: 3.5, resets_at: null }
  const answering = recordingControlPlane(() => ({ values: [shown], next_cursor: null }))
  const terminal = recordingTerminal({ environment: answering.environment })
  await runCommandLine(budget(terminal), ['values', 'b1', '--value', 'acme & co', '--limit', '5'], terminal)
  await answering.stop()
  expect(answering.requests.map(({ target }) => target)).toEqual(['/v1/budgets/b1/values?value=acme+%26+co&limit=5'])
  expect(terminal.written()).toMatch(/VALUE +SPEND +REMAINING +RESETS AT\nacme +1\.5 +3\.5/)
})
