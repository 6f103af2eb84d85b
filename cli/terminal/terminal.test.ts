import { expect, test } from 'bun:test'
import { closeSync, openSync } from 'node:fs'

test('goes on when a line cannot be written to standard error', async () => {
  const source = `
    import { processTerminal } from ${JSON.stringify(`${import.meta.dir}/terminal.ts`)}
    const terminal = processTerminal('gatehouse')
    terminal.note('lost')
    await Bun.sleep(10)
    terminal.note('lost')
    await terminal.write('went on')
    await terminal.end(3)`
  const device = openSync('/dev/full', 'w')
  const child = Bun.spawn([process.execPath, '-e', source], { stdout: 'pipe', stderr: device })
  const said = await child.stdout.text()
  closeSync(device)
  expect(said).toBe('went on')
  expect(await child.exited).toBe(3)
})

test('ends with the reason and advice when standard output cannot be written', async () => {
  const device = openSync('/dev/full', 'w')
  const command = [process.execPath, `${import.meta.dir}/../main.ts`, 'version']
  const child = Bun.spawn(command, { stdout: device, stderr: 'pipe' })
  const said = await child.stderr.text()
  closeSync(device)
  expect(said).toBe(
    [
      'error: Standard output cannot be written: no space is left where it goes. What was written is not complete',
      '  code output_unwritable',
      '  Make room there or write elsewhere, and run the command again',
      '',
    ].join('\n'),
  )
  expect(await child.exited).toBe(1)
})
