import { expect, test } from 'bun:test'
import { closeSync, openSync } from 'node:fs'
import { recordingControlPlane } from '../testing/control-plane.ts'

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

test.each([
  ['y', 0, ['DELETE /v1/teams/research']],
  ['n', 2, []],
])('asks a person at a terminal before what destroys, and the answer %p decides', async (answer, code, asked) => {
  const control = recordingControlPlane(() => ({ id: 'research' }))
  let said = ''
  const decoder = new TextDecoder()
  const question = Promise.withResolvers<void>()
  const command = Bun.spawn([process.execPath, `${import.meta.dir}/../main.ts`, 'team', 'delete', 'research'], {
    env: { ...process.env, ...control.environment },
    terminal: {
      data(_, data) {
        said += decoder.decode(data, { stream: true })
        if (said.includes('[y/N]')) question.resolve()
      },
    },
  })
  await question.promise
  command.terminal?.write(`${answer}\r`)
  expect(await command.exited).toBe(code)
  expect(said).toContain('This deletes research, which cannot be undone. Go on? [y/N]')
  expect(control.requests.map(({ method, target }) => `${method} ${target}`)).toEqual(asked)
  await control.stop()
})
