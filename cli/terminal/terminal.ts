import { Failure } from '../../src/failure.ts'
import { processInput } from './input.ts'
import { type LiveScreen, openScreen } from './live-screen.ts'

/** Where a command reads from and writes to: data on stdout, everything else on stderr (cli/README.md). */
export interface Terminal {
  /** The name the executable was called by, for help and advice. */
  name: string
  environment: Readonly<Record<string, string | undefined>>
  /** Whether stdout is a terminal, that is whether a person reads it. */
  interactive: boolean
  /** How many columns it has; absent where no person reads stdout. */
  width?: number
  /** Writes data to stdout; resolves when the system has taken it. Throws `output_unwritable`. */
  write(data: string | Uint8Array): Promise<void>
  /** Writes one line to stderr. */
  note(line: string): void
  /** Asks a person for a line; absent where nobody can answer, because stdin or stderr is no terminal. */
  ask?(question: string): Promise<string>
  /** Takes the whole screen, until it is closed; absent where stdin or stdout is no terminal. */
  openScreen?(): LiveScreen
  /** Shows a line on stderr in place of the one before; absent where no person watches it, or data goes there too. */
  progress?(line: string): void
}

export interface ProcessTerminal extends Terminal {
  /** Ends the process once everything that was written has been taken. */
  end(exitCode: number): Promise<never>
}

/** The process's own streams. A reader that leaves (`… | head`) ends the process quietly, as other tools do. */
export function processTerminal(name: string): ProcessTerminal {
  process.stdout.on('error', (error) => {
    if ('code' in error && error.code === 'EPIPE') process.exit(0)
    // `write` reports any other error to its caller.
  })
  process.stderr.on('error', () => {
    // What cannot be said (its disk is full, its reader gone) stops nothing that runs.
  })
  return {
    name,
    environment: process.env,
    interactive: process.stdout.isTTY === true,
    ...(process.stdout.columns > 0 ? { width: process.stdout.columns } : {}),
    write: (data) =>
      written(process.stdout, data).catch((error: unknown) => {
        throw unwritable(error)
      }),
    note: (line) => {
      process.stderr.write(`${line}\n`)
    },
    ...(process.stderr.isTTY && !process.stdout.isTTY ? { progress } : {}),
    ...(process.stderr.isTTY && process.stdin.isTTY ? { ask } : {}),
    ...(process.stdout.isTTY && process.stdin.isTTY ? { openScreen } : {}),
    async end(exitCode) {
      const taken = await Promise.allSettled([written(process.stdout, ''), written(process.stderr, '')])
      process.exit(exitCode === 0 && taken[0].status === 'rejected' ? 1 : exitCode)
    },
  }
}

async function ask(question: string): Promise<string> {
  process.stderr.write(question)
  return await processInput.line()
}

/** Back to the line's beginning, and what stood there erased (ECMA-48, EL). */
const progress = (line: string): void => {
  process.stderr.write(`\r\u001b[K${line}`)
}

const written = (stream: NodeJS.WriteStream, data: string | Uint8Array): Promise<void> =>
  new Promise((resolve, reject) => {
    stream.write(data, (error) => (error ? reject(error) : resolve()))
  })

const reasons: Readonly<Record<string, string>> = {
  ENOSPC: 'no space is left where it goes',
  EDQUOT: 'the quota where it goes is used up',
  EFBIG: 'the file it goes to may not grow further',
  EBADF: 'it is closed',
  EIO: 'the device it goes to has failed',
}

function unwritable(error: unknown): Failure {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  const reason = reasons[code] ?? (code === '' ? String(error) : code)
  return new Failure('output_unwritable', {
    message: `Standard output cannot be written: ${reason}. What was written is not complete`,
    cause: error,
  })
}
