import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { executable } from '../../../test/support/executable.ts'
import { recordingControlPlane } from '../../testing/control-plane.ts'

const tokens = [
  { id: '01990000-0000-7000-8000-000000000001', name: 'app', status: 'active' },
  { id: '01990000-0000-7000-8000-000000000002', name: 'app', status: 'rotated' },
  { id: '01990000-0000-7000-8000-000000000003', name: 'twice', status: 'active' },
  { id: '01990000-0000-7000-8000-000000000004', name: 'twice', status: 'active' },
  { id: '01990000-0000-7000-8000-000000000005', name: '$(touch /tmp/x)', status: 'active' },
]
const names = ['research', 'red:team', 'blue team', "o'neil", '$(touch ran)']
/** The shell asks the executable at each key: it starts in a tenth of the time that the sources take. */
const control = recordingControlPlane(({ path }) =>
  path === '/v1/tokens'
    ? { tokens, next_cursor: null }
    : { teams: names.map((name) => ({ id: name, name })), next_cursor: null },
)
afterAll(() => control.stop())

/** The first column of what the shell is offered for these words, and the exit code. */
async function run(...rawArguments: string[]): Promise<{ offered: string[]; text: string; code: number }> {
  const command = Bun.spawn([await executable(), 'completion', ...rawArguments], {
    stdout: 'pipe',
    stderr: 'pipe',
    env: { ...process.env, ...control.environment },
  })
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
  expect((await run('complete', '--', 'token', 'create', '--team-id', 'res')).offered).toEqual(['research'])
  expect((await run('complete', '--', 'token', 'create', '--team-id=res')).offered).toEqual(['research'])
})

test('offers nothing where the control plane cannot be reached', async () => {
  const { offered, code } = await run('complete', '--', '--api-url', 'http://127.0.0.1:1', 'team', 'get', '')
  expect([offered, code]).toEqual([[], 0])
})

/** What bash would put in the place of the end of each line, after it has loaded the script twice. */
async function inBash(lines: readonly string[]): Promise<{ offered: string[]; complaint: string; files: string[] }> {
  const { text } = await run('bash')
  const program = `set -eu
gatehouse() { ${await executable()} "$@"; }
compopt() { :; }
COMP_WORDBREAKS=$' \\t\\n"\\'@><=;|&(:'
eval "$1"; eval "$1"; shift
complete -p gatehouse
for COMP_LINE; do
  COMP_POINT=\${#COMP_LINE}
  __gatehouse_complete
  (IFS='|'; printf '%s\\n' "\${COMPREPLY[*]}")
done`
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-completion-'))
  const shell = Bun.spawn(['bash', '--norc', '-c', program, 'bash', text, ...lines], {
    ...{ cwd: directory, stdout: 'pipe', stderr: 'pipe', env: { ...process.env, ...control.environment } },
  })
  const [said, complaint] = await Promise.all([shell.stdout.text(), shell.stderr.text()])
  const files = readdirSync(directory)
  rmSync(directory, { recursive: true })
  return { offered: said.trimEnd().split('\n'), complaint, files }
}

test('bash completes after two loads, also after characters at which it cuts words, and runs nothing of the line', async () => {
  const cases = [
    ['gatehouse tok', 'token'],
    ['gatehouse token cl', 'clone'],
    ['gatehouse token create --team-id $(touch ran) --purpose g', 'general|gateway-runtime'],
    ['gatehouse token create --purpose=ge', 'general'],
    ['gatehouse token create --purpose "ge', 'general'],
    ['gatehouse team get re', 'research|red:team'],
    ['gatehouse team get red:', 'team'],
    ['gatehouse team get bl', 'blue\\ team'],
    ['gatehouse team get "bl', 'blue team'],
    ['gatehouse team get --json blue\\ t', 'blue\\ team'],
    ["gatehouse team get 'bl", 'blue team'],
    ['gatehouse team get o', "o\\'neil"],
    ["gatehouse team get 'o", ''],
    ['gatehouse token list --team-id=red:', 'team'],
    ['gatehouse team get $', '\\$\\(touch\\ ran\\)'],
    ['gatehouse team get "', "research|red:team|blue team|o'neil|\\$(touch ran)"],
    ['gatehouse team get research r', ''],
  ] as const
  const { offered, complaint, files } = await inBash(cases.map(([line]) => line))
  expect(offered[0]).toBe('complete -o default -F __gatehouse_complete gatehouse')
  expect(cases.map(([line], index) => [line, offered[index + 1] ?? ''])).toEqual(cases.map((each) => [...each]))
  expect([complaint, files]).toEqual(['', []])
})

test('files are offered for an option that takes one, also by its short name', async () => {
  for (const flag of ['--file', '-f']) expect((await run('complete', '--', 'apply', flag, '')).text).toEndWith(':0\n')
  expect((await run('complete', '--', 'apply', '--label', '')).text).toEndWith(':4\n')
})

test("each shell's script asks the executable and declares no constant", async () => {
  for (const shell of ['bash', 'zsh', 'fish', 'powershell']) {
    const { text } = await run(shell)
    expect(text).toMatch(/gatehouse completion complete '?--/)
    expect(text).not.toContain('readonly')
  }
})
