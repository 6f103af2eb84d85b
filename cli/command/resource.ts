/** What the commands about kinds of records share: their calls, and the flags that become fields of a record. */
import { Failure } from '../../src/failure.ts'
import { readCount } from '../commands/tokens/token-scope.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { command, type Leaf } from './command.ts'
import { connect, pageFlags, pageQuery, pageSchema, recordFlags, sendRecord, showPage } from './record.ts'

export interface Resource {
  /** `provider` */
  one: string
  /** The field of a page: `providers`. */
  of: string
  path: string
  /** The columns of a list. */
  fields: readonly string[]
}

export const idArgument = { id: { type: 'positional', description: 'Its id' } } as const

export const clearFlag = {
  clear: { type: 'string', description: 'Take a field back to its default (repeatable)', valueHint: 'FIELD' },
} as const

export const recordPath = ({ path }: Resource, id: string): string => `${path}/${encodeURIComponent(id)}`

export const listOf = (resource: Resource, terminal: Terminal): Leaf =>
  command({
    about: `List ${resource.of.replaceAll('_', ' ')}`,
    args: { ...pageFlags, ...recordFlags },
    async run(flags) {
      const { path, of, fields } = resource
      const page = await connect(flags, terminal).json({ path, query: pageQuery(flags) }, pageSchema)
      await showPage(page, { of, fields, json: flags.json, terminal })
    },
  })

export const getOf = (resource: Resource, terminal: Terminal): Leaf =>
  command({
    about: `Show one ${resource.one}`,
    args: { ...idArgument, ...recordFlags },
    async run(flags) {
      await sendRecord({ path: recordPath(resource, flags.id) }, flags, terminal)
    },
  })

export const deleteOf = (resource: Resource, about: string, terminal: Terminal): Leaf =>
  command({
    about,
    args: {
      ...idArgument,
      yes: { type: 'boolean', description: 'Really delete it; there is no way back' },
      ...recordFlags,
    },
    async run(flags) {
      if (!flags.yes) {
        throw new Failure('usage', { message: 'Deleting cannot be undone: repeat the command with --yes' })
      }
      await sendRecord({ method: 'DELETE', path: recordPath(resource, flags.id) }, flags, terminal)
    },
  })

/** A price as JSON, as the API takes it. Throws `usage`. */
export function priceOf(text: string | undefined, flag: string): unknown {
  if (text === undefined) return undefined
  try {
    return JSON.parse(text)
  } catch {
    // What was typed is not quoted; the form is.
    const form = '{"input_per_million": 1.5, "output_per_million": 6}'
    throw new Failure('usage', { message: `${flag} takes a price as JSON: '${form}'` })
  }
}

/** A whole number from 1. Throws `usage`. */
export const numberOf = (text: string | undefined, flag: string): number | undefined =>
  text === undefined ? undefined : readCount(flag, text)

/** The values of a repeatable flag. */
export const linesOf = (text: string | undefined): string[] | undefined => text?.split('\n')

/** Fields that are cleared, as null; `clearable` names those there are. Throws `usage` for others. */
export function clearedFields(text: string | undefined, clearable: readonly string[]): Record<string, null> {
  const names = (linesOf(text) ?? []).map((name) => name.replaceAll('-', '_'))
  if (names.some((name) => !clearable.includes(name))) {
    throw new Failure('usage', { message: `--clear takes one of ${clearable.join(', ')}` })
  }
  return Object.fromEntries(names.map((name) => [name, null]))
}

/** Throws `usage` where a change changes nothing. */
export function requireChange(body: Readonly<Record<string, unknown>>): void {
  if (Object.values(body).some((value) => value !== undefined)) return
  throw new Failure('usage', { message: 'Say what to change: --help shows the options' })
}
