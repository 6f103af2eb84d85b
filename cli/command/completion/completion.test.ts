import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { recordingControlPlane } from '../../testing/control-plane.ts'

const tokens = [
  { id: '01990000-0000-7000-8000-000000000001', name: 'app', status: 'active' },
  { id: '01990000-0000-7000-8000-000000000002', name: 'app', status: 'rotated' },
  { id: '01990000-0000-7000-8000-000000000003', name: 'twice', status: 'active' },
  { id: '01990000-0000-7000-8000-000000000004', name: 'twice', status: 'active' },
  { id: '01990000-0000-7000-8000-000000000005', name: '$(touch /tmp/x)', status: 'active' },
]
const control = recordingControlPlane(({ path }) =>
  path === '/v1/tokens' ? { tokens, next_cursor: null } : { teams: [{ id: 't', name: 'research' }], next_cursor: null },
)
afterAll(() => control.stop())

/** The first column of what the shell is offered for these words, and the exit code. */
async function run(...rawArguments: string[]): Promise<{ offered: string[]; text: string; code: number }> {
  const command = Bun.spawn(
    [process.execPath, resolve(import.meta.dir, '../../main.ts'), 'completion', ...rawArguments],
    {
      stdout: 'pipe',
      stderr: 'pipe',
      env: { ...process.env, ...control.environment },
    },
  )
  const [text, code] = await Promise.all([new Response(command.stdout).text(), command.exited])
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith(':'))
  return { offered: lines.map((line) => line.split('\t')[0] ?? ''), text, code }
}

test('completes commands, their subcommands and their options', async () => {
  expect((await run('complete', '--', 'tok')).offered).toEqual(['token'])
  expect((await run('complete', '--', 'token', 'cl')).offered).toEqual(['clone'])
  expect((await run('complete', '--', 'token', 'create', '--max-')).offered.toSorted()).toEqual([
    '--max-budget',
    '--max-requests',
  ])
  expect((await run('complete', '--', 'events', '')).offered).toContain('tail')
})

test('offers no commands after an option that takes a value', async () => {
  expect((await run('complete', '--', 'token', 'create', '--name', '')).offered).toEqual([])
})

test('offers the choices of an option, pages of the handbook and clients', async () => {
  expect((await run('complete', '--', 'token', 'create', '--purpose', 'g')).offered).toEqual([
    'general',
    'gateway-runtime',
  ])
  expect((await run('complete', '--', 'help', 'policies/pi')).offered).toEqual(['policies/pii'])
  expect((await run('complete', '--', 'connect', 'cod')).offered).toEqual(['codex'])
})

test('offers names of records, and ids for what a name does not say or a shell would read', async () => {
  const ids = [3, 4, 5].map((number) => `01990000-0000-7000-8000-00000000000${number}`)
  expect((await run('complete', '--', 'token', 'get', '')).offered).toEqual(['app', ...ids])
  expect((await run('complete', '--', 'token', 'create', '--team-id', 'r')).offered).toEqual(['research'])
  expect((await run('complete', '--', 'token', 'create', '--team-id=r')).offered).toEqual(['research'])
})

test('offers nothing where the control plane cannot be reached', async () => {
  const { offered, code } = await run('complete', '--', '--api-url', 'http://127.0.0.1:1', 'team', 'get', '')
  expect([offered, code]).toEqual([[], 0])
})

test('bash completes after two loads, and runs nothing that stands in the line', async () => {
  const { text } = await run('bash')
  const program = `set -eu
gatehouse() { ${process.execPath} ${resolve(import.meta.dir, '../../main.ts')} "$@"; }
eval "$1"; eval "$1"
COMP_WORDS=(gatehouse token create --team-id '$(touch ran)' --purpose g) COMP_CWORD=6 COMP_LINE='' COMP_POINT=0
compopt() { :; }
__gatehouse_complete
printf '%s\\n' "\${COMPREPLY[@]}"`
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-completion-'))
  const shell = Bun.spawn(['bash', '--norc', '-c', program, 'bash', text], {
    ...{ cwd: directory, stdout: 'pipe', stderr: 'pipe', env: { ...process.env, ...control.environment } },
  })
  const [said, complaint] = await Promise.all([shell.stdout.text(), shell.stderr.text()])
  const files = readdirSync(directory)
  rmSync(directory, { recursive: true })
  expect([complaint, said.split('\n').map((line) => line.trim()), files]).toEqual([
    '',
    ['general', 'gateway-runtime', ''],
    [],
  ])
})

test('bash loads the completion script twice without an error', async () => {
  const { text, code } = await run('bash')
  const script = 'set -eu; eval "$1"; eval "$1"; complete -p gatehouse'
  const shell = Bun.spawn(['bash', '--norc', '-c', script, 'bash', text], { stdout: 'pipe', stderr: 'pipe' })
  const [said, complaint] = await Promise.all([new Response(shell.stdout).text(), new Response(shell.stderr).text()])
  expect([code, complaint, said]).toEqual([0, '', 'complete -F __gatehouse_complete gatehouse\n'])
})

test("each shell's script asks the executable and declares no constant", async () => {
  for (const shell of ['bash', 'zsh', 'fish', 'powershell']) {
    const { text } = await run(shell)
    expect(text).toMatch(/gatehouse completion complete '?--/)
    expect(text).not.toContain('readonly')
  }
})
