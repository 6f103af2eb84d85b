/** What the commands about limits share: budgets, consumer groups and access policies are kept alike. */
import { Failure } from '../src/failure.ts'
import { command, type Leaf } from './command.ts'
import { connect, pageFlags, pageSchema, recordFlags, recordSchema, showPage, showRecord } from './record.ts'
import type { Terminal } from './terminal.ts'
import { given, readCount } from './token-scope.ts'

export interface LimitGroup {
  /** `/v1/budgets` */
  path: string
  /** The member that holds a page: `budgets`. */
  plural: string
  /** `budget` */
  word: string
  /** What a list shows. */
  fields: readonly string[]
}

export const rateFlags = {
  'requests-per-minute': { type: 'string', description: 'The most requests a minute', valueHint: 'N' },
  'tokens-per-minute': { type: 'string', description: 'The most model tokens a minute', valueHint: 'N' },
} as const

export type RateFlags = { readonly [Name in keyof typeof rateFlags]: string | undefined }

/** Rates as the API takes them. Throws `usage` naming the flag. */
export const readRates = (flags: RateFlags): Record<string, unknown> =>
  given({
    requests_per_minute: countOf('--requests-per-minute', flags['requests-per-minute']),
    tokens_per_minute: countOf('--tokens-per-minute', flags['tokens-per-minute']),
  })

const countOf = (flag: string, text: string | undefined): number | undefined =>
  text === undefined ? undefined : readCount(flag, text)

/** The values of a repeatable flag, also where several stand in one with commas; undefined where it was not given. */
export const listOf = (text: string | undefined): string[] | undefined =>
  text === undefined ? undefined : text.split(/[\n,]/).map((value) => value.trim())

export const idArgument = { id: { type: 'positional', description: 'Its id' } } as const

const pathOf = ({ path }: LimitGroup, id: string): string => `${path}/${encodeURIComponent(id)}`

export async function createLimit(
  group: LimitGroup,
  body: Readonly<Record<string, unknown>>,
  flags: Parameters<typeof connect>[0] & { json: boolean | undefined },
  terminal: Terminal,
): Promise<void> {
  const request = { method: 'POST', path: group.path, body } as const
  await showRecord(await connect(flags, terminal).json(request, recordSchema), flags.json, terminal)
}

export async function updateLimit(
  group: LimitGroup,
  id: string,
  body: Readonly<Record<string, unknown>>,
  flags: Parameters<typeof connect>[0] & { json: boolean | undefined },
  terminal: Terminal,
): Promise<void> {
  if (Object.keys(body).length === 0) throw new Failure('usage', { message: 'Say what is to change' })
  const request = { method: 'PATCH', path: pathOf(group, id), body } as const
  await showRecord(await connect(flags, terminal).json(request, recordSchema), flags.json, terminal)
}

export const listLimits = (group: LimitGroup, terminal: Terminal): Leaf =>
  command({
    about: `List what there is of each ${group.word}`,
    args: { ...pageFlags, ...recordFlags },
    async run(flags) {
      const { limit, cursor, json } = flags
      const page = await connect(flags, terminal).json({ path: group.path, query: { limit, cursor } }, pageSchema)
      await showPage(page, { of: group.plural, fields: group.fields, json, terminal })
    },
  })

export const getLimit = (group: LimitGroup, terminal: Terminal): Leaf =>
  command({
    about: `Show one ${group.word}`,
    args: { ...idArgument, ...recordFlags },
    async run(flags) {
      const found = await connect(flags, terminal).json({ path: pathOf(group, flags.id) }, recordSchema)
      await showRecord(found, flags.json, terminal)
    },
  })

export const deleteLimit = (group: LimitGroup, terminal: Terminal): Leaf =>
  command({
    about: `Delete one ${group.word} that no token in force names`,
    args: {
      ...idArgument,
      yes: { type: 'boolean', description: 'Really delete it; there is no way back' },
      ...recordFlags,
    },
    async run(flags) {
      if (!flags.yes) {
        throw new Failure('usage', { message: 'Deleting cannot be undone: repeat the command with --yes' })
      }
      const request = { method: 'DELETE', path: pathOf(group, flags.id) } as const
      await showRecord(await connect(flags, terminal).json(request, recordSchema), flags.json, terminal)
    },
  })
