import { expect, test } from 'bun:test'
import { join } from 'node:path'

test('reads one line of several, and leaves the rest to the next call', async () => {
  const program = `
    const { processInput } = await import(${JSON.stringify(join(import.meta.dir, 'input.ts'))})
    console.log(JSON.stringify([await processInput.line(), await processInput.line()]))
  `
  const child = Bun.spawn([process.execPath, '-e', program], { stdin: new Blob(['first\nsecond']), stdout: 'pipe' })
  expect(JSON.parse(await new Response(child.stdout).text())).toEqual(['first', 'second'])
  expect(await child.exited).toBe(0)
})
