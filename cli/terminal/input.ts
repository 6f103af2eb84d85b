/** What a person types, or another program pipes in: one line, and where it is secret without showing it. */
import { Failure } from '../../src/failure.ts'

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
  line: readLine,
  async hiddenLine() {
    if (process.stdin.isTTY !== true) return await readLine()
    process.stdin.setRawMode(true)
    try {
      return await readLine()
    } finally {
      process.stdin.setRawMode(false)
      process.stderr.write('\n')
    }
  },
}

/** In raw mode Ctrl-C and Ctrl-D come as characters. */
const interruption = '\u0003'
// biome-ignore lint/suspicious/noControlCharactersInRegex: what a terminal sends
const lineEnds = /\r?\n|[\r\u0004]/

/** Reads up to the end of one line and leaves what follows it to the next call. */
function readLine(): Promise<string> {
  const { stdin } = process
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const decoder = new TextDecoder()
  let typed = ''
  const hear = (chunk: Uint8Array) => {
    typed += decoder.decode(chunk, { stream: true })
    const end = lineEnds.exec(typed)
    if (typed.includes(interruption)) reject(new Failure('usage', { message: 'Interrupted' }))
    else if (end) {
      // It must not hear what it puts back.
      stdin.off('data', hear).pause()
      const rest = typed.slice(end.index + end[0].length)
      if (rest !== '') stdin.unshift(Buffer.from(rest))
      resolve(edited(typed.slice(0, end.index)))
    }
  }
  const stop = () => {
    if (typed === '') reject(new Failure('usage', { message: 'The input ended before anything was typed' }))
    else resolve(edited(typed))
  }
  stdin.on('data', hear).once('end', stop)
  stdin.resume()
  return promise.finally(() => {
    stdin.off('data', hear).off('end', stop)
    stdin.pause()
  })
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
