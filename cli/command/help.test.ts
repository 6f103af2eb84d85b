import { expect, test } from 'bun:test'
import { main } from '../main.ts'
import { recordingTerminal } from '../testing/terminal.ts'

async function help(width: number | undefined, ...words: string[]): Promise<string[]> {
  const terminal = recordingTerminal({ environment: { NO_COLOR: '1' }, ...(width === undefined ? {} : { width }) })
  expect(await main([...words, '--help'], terminal)).toBe(0)
  return terminal.written().split('\n')
}

const wordsOf = (lines: readonly string[]): string[] => lines.join(' ').split(/\s+/)

test('wraps help at the width of the terminal, under the text beside an option, and says the same words', async () => {
  const lines = await help(80, 'alert', 'create')
  const examples = lines.findIndex((line) => line.endsWith('EXAMPLES'))
  const tooWide = lines.slice(0, examples).filter((line) => line.length > 80)
  // A list of choices has no blank.
  expect(tooWide.every((line) => /^ *--condition=\S+$/.test(line))).toBe(true)
  const start = lines.findIndex((line) => line.includes('--at-least=<N>'))
  const column = lines[start]?.indexOf('The least') ?? 0
  expect(lines[start + 1]?.search(/\S/)).toBe(column)
  const whole = await help(undefined, 'alert', 'create')
  expect(wordsOf(lines)).toEqual(wordsOf(whole))
  expect(lines.slice(examples)).toEqual(whole.slice(-(lines.length - examples)))
})

test('keeps lines whole where no person reads them', async () => {
  const lines = await help(undefined, 'alert', 'create')
  expect(lines.some((line) => line.includes('The least before') && line.endsWith('for spend_rate'))).toBe(true)
})
