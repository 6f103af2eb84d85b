/** `help` shows the handbook in the terminal: its topics, or one of its pages; or the help of a command. */
import { defineCommand } from 'citty'
import { Failure } from '../../src/failure.ts'
import { handbookPages } from '../../src/handbook/pages.ts'
import { findPage, pageText } from '../../src/handbook/render.ts'
import { nearest } from '../../src/lib/text/nearest.ts'
import { type Command, findCommand, helpOf, subCommandsOf } from '../command/command.ts'
import { columns } from '../terminal/table.ts'
import type { Terminal } from '../terminal/terminal.ts'

const width = 100

/** `root` returns the commands that a topic may name. */
export const help = (terminal: Terminal, root: () => Command) =>
  defineCommand({
    meta: { description: 'Show a page of the handbook or the help of a command, or list the topics' },
    args: {
      topic: {
        ...{ type: 'positional', required: false, repeatable: true },
        description: 'A page, a word of its title, or a command, such as policies/pii, budgets or token create',
      },
    },
    async run({ rawArgs }) {
      const words = rawArgs.filter((word) => word !== '--')
      const topic = words.length === 0 ? undefined : words.join(' ')
      const pages = await handbookPages()
      if (topic === undefined) {
        const rows = pages.map(({ path, title }) => [`  ${path}`, title])
        await terminal.write(
          `The handbook. ${terminal.name} help TOPIC shows a page, ${terminal.name} --help lists the commands.\n\n${columns(rows)}`,
        )
        return
      }
      const page = findPage(pages, topic)
      if (page) return await terminal.write(pageText(page, width))
      const command = await helpOfCommand(root(), words, terminal)
      if (command !== null) return await terminal.write(command)
      const alike = pages.filter(({ path, title }) => `${path} ${title}`.toLowerCase().includes(topic.toLowerCase()))
      const [only] = alike
      if (only !== undefined && alike.length === 1) return await terminal.write(pageText(only, width))
      throw new Failure('usage', { message: unknownTopic(topic, alike, pages, terminal.name) })
    },
  })

/** Null where the words name no command. */
async function helpOfCommand(root: Command, words: readonly string[], terminal: Terminal): Promise<string | null> {
  const [first = ''] = words
  const known = (await subCommandsOf(root)).some(([name]) => name === first)
  if (!known) return null
  const { command, path } = await findCommand(root, [...words, '--help'], terminal.name)
  return await helpOf(command, path, terminal)
}

type Pages = readonly { path: string; title: string }[]

function unknownTopic(topic: string, alike: Pages, pages: Pages, name: string): string {
  if (alike.length > 0) return `Several pages are about this: ${alike.map(({ path }) => path).join(', ')}`
  const paths = pages.flatMap(({ path }) => [path, path.split('/').at(-1) ?? path])
  const near = nearest(topic, paths)
  return `There is no such topic: ${near === null ? `${name} help lists them` : `did you mean ${near}?`}`
}
