import { expect, test } from 'bun:test'
import { resolve } from 'node:path'

/** The first column of what the shell is offered for these words, and the exit code. */
async function run(...rawArguments: string[]): Promise<{ offered: string[]; text: string; code: number }> {
  const command = Bun.spawn([process.execPath, resolve(import.meta.dir, 'main.ts'), 'completion', ...rawArguments], {
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [text, code] = await Promise.all([new Response(command.stdout).text(), command.exited])
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith(':'))
  return { offered: lines.map((line) => line.split('\t')[0] ?? ''), text, code }
}

test('commands, the commands of a group and the options of a command are completed', async () => {
  expect((await run('complete', '--', 'tok')).offered).toEqual(['token'])
  expect((await run('complete', '--', 'token', 'cl')).offered).toEqual(['clone'])
  expect((await run('complete', '--', 'token', 'create', '--max-')).offered.toSorted()).toEqual([
    '--max-budget',
    '--max-requests',
  ])
  expect((await run('complete', '--', 'events', '')).offered).toContain('tail')
})

test('an option that takes a value is not followed by commands', async () => {
  expect((await run('complete', '--', 'token', 'create', '--name', '')).offered).toEqual([])
})

test('the script that a shell loads is one that it can read', async () => {
  const { text, code } = await run('bash')
  const shell = Bun.spawn(['bash', '-n'], { stdin: new Blob([text]), stderr: 'pipe' })
  expect([code, await shell.exited, await new Response(shell.stderr).text()]).toEqual([0, 0, ''])
  for (const shell of ['zsh', 'fish', 'powershell']) {
    expect((await run(shell)).text).toMatch(/gatehouse completion complete '?--/)
  }
})
