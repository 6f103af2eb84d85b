import { defineCommand } from 'citty'
import { version } from '../../src/version.ts'
import type { Terminal } from '../terminal/terminal.ts'

export const showVersion = (terminal: Terminal) =>
  defineCommand({
    meta: { description: 'Print the version' },
    args: { json: { type: 'boolean', description: 'Print JSON' } },
    run: ({ args: { json } }) => terminal.write(json ? `${JSON.stringify({ version })}\n` : `${version}\n`),
  })
