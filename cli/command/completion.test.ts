import { expect, test } from 'bun:test'
import { resolve } from 'node:path'

/** The first column of what the shell is offered for these words, and the exit code. */
async function run(...rawArguments: string[]): Promise<{ offered: string[]; text: string; code: number }> {
  const command = Bun.spawn([process.execPath, resolve(import.meta.dir, '../main.ts'), 'completion', ...rawArguments], {
    stdout: 'pipe',
    stderr: 'pipe',
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
