/** The table of an installation that keeps older events in ClickHouse. */
import { defineCommand } from 'citty'
import { clickhouseSchema } from '../../src/events/clickhouse/schema.ts'
import type { Terminal } from '../terminal/terminal.ts'

export const clickhouse = (terminal: Terminal) =>
  defineCommand({
    meta: { description: 'Print the table of a ClickHouse that keeps older events, as SQL' },
    async run() {
      await terminal.write(`${clickhouseSchema};\n`)
    },
  })
