import { version } from '../../src/version.ts'
import { command, type Leaf } from '../command/command.ts'
import type { Terminal } from '../terminal/terminal.ts'

export const showVersion = (terminal: Terminal): Leaf =>
  command({
    about: 'Show the version',
    args: { json: { type: 'boolean', description: 'Print JSON' } },
    run: ({ json }) => terminal.write(json ? `${JSON.stringify({ version })}\n` : `${version}\n`),
  })
