import { expect, test } from 'bun:test'
import { closeSync, openSync } from 'node:fs'

test('a note that cannot be written ends nothing', async () => {
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
