import { expect, test } from 'bun:test'
import { join } from 'node:path'

const program = `
  const { openScreen } = await import(${JSON.stringify(join(import.meta.dir, 'live-screen.ts'))})
  const screen = openScreen()
  screen.draw(['first', 'a line that is longer than the terminal', 'third', 'fourth'])
  if (process.argv.includes('fail')) throw new Error('a defect')
  await screen.ended
  screen.close()
`

/** What a terminal of 20 columns and 3 lines was sent. */
async function onTerminal(end: 'key' | 'signal' | 'fail'): Promise<{ sent: string; code: number }> {
  let sent = ''
  const decoder = new TextDecoder()
  const drawn = Promise.withResolvers<void>()
  const command = Bun.spawn([process.execPath, '-e', program, end], {
    terminal: {
      ...{ cols: 20, rows: 3 },
      data(_, data) {
        sent += decoder.decode(data, { stream: true })
        if (sent.includes('third')) drawn.resolve()
      },
    },
  })
  await drawn.promise
  if (end === 'key') command.terminal?.write('q')
  if (end === 'signal') command.kill('SIGTERM')
  const code = await command.exited
  return { sent, code }
}

const restored = '\u001b[?25h\u001b[?1049l'

test.each(['key', 'signal', 'fail'] as const)('gives the screen back after it was ended by a %s', async (end) => {
  const { sent, code } = await onTerminal(end)
  expect(sent).toStartWith('\u001b[?1049h\u001b[?25l')
  expect(sent.indexOf(restored)).toBeGreaterThan(sent.indexOf('third'))
  expect(code).toBe(end === 'fail' ? 1 : 0)
})

test('cuts lines and what is below the screen', async () => {
  const { sent } = await onTerminal('key')
  expect(sent).toContain('a line that is longe\u001b[K')
  expect(sent).not.toContain('fourth')
})
