/**
 * `import` writes a file for `apply` from the configuration of another gateway, and names what could not be carried
 * over, line by line. Nothing is changed, and no secret is copied.
 */
import { basename, extname } from 'node:path'
import { defineCommand } from 'citty'
import { stringify } from 'yaml'
import { Failure } from '../../../src/failure.ts'
import { printable } from '../../terminal/table.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import { readSources } from '../apply/files.ts'
import { kinds } from '../apply/kinds/kinds.ts'
import { fromBifrost } from './bifrost.ts'
import { Conversion } from './conversion.ts'
import { fromLitellm } from './litellm.ts'
import { fromPortkey } from './portkey.ts'

type Read = (file: Conversion, name: string) => void

const formats = {
  litellm: { about: 'config.yaml of the LiteLLM proxy', read: fromLitellm },
  portkey: { about: 'a config of Portkey, as JSON', read: fromPortkey },
  bifrost: { about: 'config.json of Bifrost', read: fromBifrost },
} satisfies Record<string, { about: string; read: Read }>

export const importCommand = (terminal: Terminal, readInput = () => Bun.stdin.bytes()) =>
  defineCommand({
    meta: { description: 'Write a file for apply from the configuration of another gateway; nothing is changed' },
    subCommands: {
      litellm: () => importFrom('litellm', terminal, readInput),
      portkey: () => importFrom('portkey', terminal, readInput),
      bifrost: () => importFrom('bifrost', terminal, readInput),
    },
  })

const importFrom = (format: keyof typeof formats, terminal: Terminal, readInput: () => Promise<Uint8Array>) =>
  defineCommand({
    meta: { description: `Read ${formats[format].about}; what could not be carried over is named on stderr` },
    args: {
      file: { type: 'positional', required: true, description: 'The file, or - for stdin' },
      ...(format === 'portkey'
        ? {
            model: {
              type: 'string',
              description: 'What callers ask for; absent: the name of the file',
              valueHint: 'NAME',
            },
          }
        : {}),
    },
    async run({ args }) {
      const [source, another] = await readSources(args.file, readInput)
      if (source === undefined || another !== undefined)
        throw new Failure('usage', { message: `${args.file} is not one document` })
      const given = 'model' in args && typeof args.model === 'string' ? args.model : null
      const file = new Conversion(source)
      const read: Read = formats[format].read
      read(file, given ?? (args.file === '-' ? 'default' : basename(args.file, extname(args.file))))
      const lists = Object.fromEntries(
        kinds.flatMap(({ member }) => (file.lists[member] === undefined ? [] : [[member, file.lists[member]]])),
      )
      if (Object.keys(lists).length === 0)
        throw new Failure('usage', { message: `${args.file} holds nothing that could be carried over` })
      await terminal.write(
        `# From ${printable(basename(args.file))}. Look at it, fill its variables, then: gatehouse apply -f FILE\n${stringify(lists, { lineWidth: 0 })}`,
      )
      const notes = file.notes()
      for (const note of notes) terminal.note(printable(note))
      terminal.note(notes.length === 0 ? 'Everything was carried over' : `${notes.length} to look at`)
    },
  })
