/** `help` shows the handbook in the terminal: its topics, or one of its pages. */
import { defineCommand } from 'citty'
import { Failure } from '../../src/failure.ts'
import { handbookPages } from '../../src/handbook/pages.ts'
import { findPage, pageText } from '../../src/handbook/render.ts'
import { columns } from '../terminal/table.ts'
import type { Terminal } from '../terminal/terminal.ts'

const width = 100

export const help = (terminal: Terminal) =>
  defineCommand({
    meta: { description: 'Show a page of the handbook, or list its topics' },
    args: { topic: { type: 'positional', required: false, description: 'A page, such as tokens or policies/pii' } },
    async run({ args: { topic } }) {
      const pages = await handbookPages()
      if (topic === undefined) {
        const rows = pages.map(({ path, title }) => [`  ${path}`, title])
        await terminal.write(
          `The handbook. ${terminal.name} help TOPIC shows a page, ${terminal.name} --help lists the commands.\n\n${columns(rows)}`,
        )
        return
      }
      const page = findPage(pages, topic)
      if (!page) {
        throw new Failure('usage', { message: `The handbook has no such page: ${terminal.name} help lists them` })
      }
      await terminal.write(pageText(page, width))
    },
  })
