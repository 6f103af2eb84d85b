/** What a person types, or another program pipes in: one line, and where it is secret without showing it. */
import { Failure } from '../src/failure.ts'
import type { Terminal } from './terminal.ts'

export interface Input {
  /** Whether a person types. */
  interactive: boolean
  /** The next line, without its end. Throws `usage` where the input ends before one. */
  line(): Promise<string>
  /** The same, not shown as it is typed. */
  hiddenLine(): Promise<string>
}

export const processInput: Input = {
  interactive: process.stdin.isTTY === true,
  line: () => readLine(() => undefined),
  async hiddenLine() {
    if (process.stdin.isTTY !== true) return await readLine(() => undefined)
    process.stdin.setRawMode(true)
    try {
      return await readLine(endsTyping)
    } finally {
      process.stdin.setRawMode(false)
      process.stderr.write('\n')
    }
  },
}

/** In raw mode the terminal no longer turns Ctrl-C into a signal. */
function endsTyping(text: string): void {
  if (text.includes('\u0003')) throw new Failure('usage', { message: 'Interrupted' })
}

/** In raw mode Ctrl-D comes as a character, too. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: what a terminal sends
const lineEnds = /[\r\n\u0004]/

async function readLine(inspect: (chunk: string) => void): Promise<string> {
  const decoder = new TextDecoder()
  let typed = ''
  for await (const chunk of process.stdin) {
    const text = typeof chunk === 'string' ? chunk : decoder.decode(chunk, { stream: true })
    inspect(text)
    typed += text
    const line = typed.split(lineEnds, 1)[0] ?? ''
    if (line.length < typed.length) return edited(line)
  }
  if (typed === '') throw new Failure('usage', { message: 'The input ended before anything was typed' })
  return edited(typed)
}

/** Takes back what was deleted while typing without a terminal's own editing. */
export function edited(typed: string): string {
  const kept: string[] = []
  for (const character of typed) {
    if (character === '\u007f' || character === '\b') kept.pop()
    else kept.push(character)
  }
  return kept.join('')
}

/** Asks for a new password, twice where a person types. */
export async function askPassword(terminal: Terminal, input: Input): Promise<string> {
  if (!input.interactive) return await input.hiddenLine()
  terminal.note('New password, 12 characters or more (it is not shown):')
  const password = await input.hiddenLine()
  terminal.note('Once more:')
  if ((await input.hiddenLine()) === password) return password
  throw new Failure('usage', { message: 'The two passwords differ' })
}
