import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runCommandLine } from '../../command/command.ts'
import { recordingTerminal } from '../../testing/terminal.ts'
import { logs } from './logs.ts'

const directory = mkdtempSync(join(tmpdir(), 'gatehouse-logs-'))
afterAll(() => rmSync(directory, { recursive: true, force: true }))
const file = join(directory, 'gatehouse.log')
const lines = [
  'Gatehouse 0.2.0 is ready',
  '{"level":"info","time":"2026-01-01T00:00:00.000Z","process":"control-plane","msg":"Ready","port":7070}',
  '{"level":"warn","time":"2026-01-01T00:00:01.000Z","process":"gateway","msg":"Slow","error":"\\u001b[2J"}',
]
writeFileSync(file, `${lines.join('\n')}\n`)

async function run(...rawArguments: string[]) {
  const terminal = recordingTerminal()
  await runCommandLine(logs(terminal, { interactive: true }), rawArguments, terminal)
  return terminal.written()
}

test('shows each line for people, without control characters, and what is not of the log as it is', async () => {
  expect(await run(file)).toBe(
    [
      'Gatehouse 0.2.0 is ready',
      '2026-01-01T00:00:00.000Z info  control-plane: Ready  port=7070',
      '2026-01-01T00:00:01.000Z warn  gateway: Slow  error=\\u001b[2J',
      '',
    ].join('\n'),
  )
})

test('chooses by level and process, and prints lines as they are with --json', async () => {
  expect(await run(file, '--level', 'warn', '--json')).toBe(`${lines[2]}\n`)
  expect(await run(file, '--process', 'control-plane', '--json')).toBe(`${lines[1]}\n`)
})

test('refuses a file that is not there, and a directory', async () => {
  await expect(run(directory)).rejects.toThrow('is no file')
  await expect(run(join(directory, 'none.log'))).rejects.toThrow('There is no file')
})
