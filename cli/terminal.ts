/** Where a command reads from and writes to: data on stdout, everything else on stderr (contract section 12). */
export interface Terminal {
  /** The name the executable was called by, for help and advice. */
  name: string
  environment: Readonly<Record<string, string | undefined>>
  /** Whether stdout is a terminal, that is whether a person reads it. */
  interactive: boolean
  /** Writes data to stdout; resolves when the system has taken it. */
  write(data: string | Uint8Array): Promise<void>
  /** Writes one line to stderr. */
  note(line: string): void
}

export interface ProcessTerminal extends Terminal {
  /** Ends the process once everything that was written has been taken. */
  end(exitCode: number): Promise<never>
}

/** The process's own streams. A reader that leaves (`… | head`) ends the process quietly, as other tools do. */
export function processTerminal(name: string): ProcessTerminal {
  process.stdout.on('error', (error) => {
    if ('code' in error && error.code === 'EPIPE') process.exit(0)
    throw error
  })
  return {
    name,
    environment: process.env,
    interactive: process.stdout.isTTY === true,
    write: (data) => written(process.stdout, data),
    note: (line) => {
      process.stderr.write(`${line}\n`)
    },
    async end(exitCode) {
      await Promise.all([written(process.stdout, ''), written(process.stderr, '')])
      process.exit(exitCode)
    },
  }
}

const written = (stream: NodeJS.WriteStream, data: string | Uint8Array): Promise<void> =>
  new Promise((resolve, reject) => {
    stream.write(data, (error) => (error ? reject(error) : resolve()))
  })

/** Whether to colour: a person reads, and asked for no restraint (https://no-color.org). */
export const mayColor = ({ interactive, environment }: Terminal): boolean =>
  interactive && !environment.NO_COLOR && environment.TERM !== 'dumb'
