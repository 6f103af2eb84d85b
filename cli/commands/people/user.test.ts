import { afterAll, beforeEach, expect, test } from 'bun:test'
import { runCommandLine } from '../../command/command.ts'
import { edited, type Input } from '../../terminal/input.ts'
import { recordingControlPlane } from '../../testing/control-plane.ts'
import { recordingTerminal } from '../../testing/terminal.ts'
import { team } from './team.ts'
import { user } from './user.ts'

const record = { id: 'u1', email: 'ann@example.com', name: 'Ann\u001b[2J', role: 'member', status: 'active' }
const invitation = {
  invitation_url: 'https://gate.example/console/invitation#secret',
  expires_at: '2030-01-01T00:00:00.000Z',
}
const control = recordingControlPlane(({ method, path }) => {
  if (path.endsWith('/invitation')) return invitation
  if (method === 'GET' && path === '/v1/users') return { users: [record], next_cursor: 'more' }
  return method === 'GET' && path === '/v1/teams' ? { teams: [], next_cursor: null } : record
})
const { requests } = control
afterAll(() => control.stop())
beforeEach(() => {
  requests.length = 0
})

const typing = (lines: string[], interactive = false): Input => {
  const rest = [...lines]
  const line = async () => rest.shift() ?? ''
  return { interactive, line, hiddenLine: line }
}

async function run(group: 'user' | 'team', rawArguments: string[], input = typing([])) {
  const terminal = recordingTerminal({ environment: control.environment })
  await runCommandLine(group === 'user' ? user(terminal, input) : team(terminal), rawArguments, terminal)
  return { out: terminal.written(), notes: terminal.noted() }
}

const person = ['--email', 'ann@example.com', '--name', 'Ann']

test('creates a person with a password from standard input, and does not show it', async () => {
  const { out, notes } = await run(
    'user',
    ['create', ...person, '--role', 'auditor', '--password-stdin'],
    typing(['a secret word']),
  )
  expect(requests).toEqual([
    {
      method: 'POST',
      target: '/v1/users',
      body: { email: 'ann@example.com', name: 'Ann', role: 'auditor', password: 'a secret word' },
    },
  ])
  expect(out + notes).not.toContain('secret word')
})

test('asks for a typed password twice, and sends nothing if the two differ', async () => {
  await expect(run('user', ['create', ...person], typing(['one', 'two'], true))).rejects.toThrow('differ')
  expect(requests).toEqual([])
  await run('user', ['create', ...person], typing(['the same word', 'the same word'], true))
  expect(requests[0]?.body).toMatchObject({ password: 'the same word' })
})

test('says that a person without a password cannot sign in', async () => {
  expect((await run('user', ['create', ...person])).notes).toContain('cannot sign in')
  expect(requests[0]?.body).toEqual({ email: 'ann@example.com', name: 'Ann' })
})

test('refuses a password as a flag', async () => {
  await expect(run('user', ['create', ...person, '--password', 'x'])).rejects.toThrow('Unknown option --password')
})

test('update sends given fields, and refuses an empty change', async () => {
  await run('user', ['update', 'u1', '--status', 'disabled'])
  expect(requests).toEqual([{ method: 'PATCH', target: '/v1/users/u1', body: { status: 'disabled' } }])
  await expect(run('user', ['update', 'u1'])).rejects.toThrow('at least one field')
})

test('prints the link of an invitation', async () => {
  const { out, notes } = await run('user', ['invite', 'u1'])
  expect(requests).toEqual([{ method: 'POST', target: '/v1/users/u1/invitation', body: {} }])
  expect(out).toBe('https://gate.example/console/invitation#secret\n')
  expect(notes).toContain('2030-01-01')
})

test('removes a second factor with --yes only', async () => {
  await expect(run('user', ['remove-second-factor', 'u1'])).rejects.toThrow('--yes')
  await run('user', ['remove-second-factor', 'u1', '--yes'])
  expect(requests.map(({ method, target }) => `${method} ${target}`)).toEqual(['DELETE /v1/users/u1/second-factor'])
})

test('unlinks an account with --yes only', async () => {
  await expect(run('user', ['unlink', 'u1'])).rejects.toThrow('--yes')
  await run('user', ['unlink', 'u1', '--yes'])
  expect(requests.map(({ method, target }) => `${method} ${target}`)).toEqual(['DELETE /v1/users/u1/identities'])
})

test('lists records as a table and makes control characters visible', async () => {
  const { out, notes } = await run('user', ['list', '--role', 'member', '--limit', '1'])
  expect(requests[0]?.target).toBe('/v1/users?role=member&limit=1')
  expect(out).toStartWith('ID  EMAIL')
  expect(out).toContain('Ann\\u001b[2J')
  expect(notes).toContain('--cursor more')
  expect((await run('team', ['list'])).out).toBe('No teams found\n')
})

test('creates and deletes teams, and adds and removes members', async () => {
  await run('team', ['create', '--name', 'Search'])
  await run('team', ['add-member', 't/1', 'u1'])
  await run('team', ['remove-member', 't/1', 'u1'])
  await run('team', ['delete', 't1', '--yes'])
  expect(requests.map(({ method, target }) => `${method} ${target}`)).toEqual([
    'POST /v1/teams',
    'POST /v1/teams/t%2F1/members',
    'DELETE /v1/teams/t%2F1/members/u1',
    'DELETE /v1/teams/t1',
  ])
  await expect(run('team', ['delete', 't1'])).rejects.toThrow('--yes')
})

test('applies backspace in a hidden line', () => {
  expect(edited('pax\u007fssword\b\u007frd')).toBe('password')
})
