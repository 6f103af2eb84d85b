/** The commands about a kind of record, made from its description: list, get, create, update, delete. */
import { type ArgsDef, defineCommand } from 'citty'
import { z } from 'zod'
import { idName, type Resource } from '../../src/api/resource.ts'
import { Failure } from '../../src/failure.ts'
import { confirm } from '../terminal/confirm.ts'
import { type Input, processInput } from '../terminal/input.ts'
import type { Terminal } from '../terminal/terminal.ts'
import type { Api } from './api.ts'
import type { Command } from './command.ts'
import { connect, pageFlags, pageQuery, readPage, recordFlags, sendRecord, showPage, showRecord } from './record.ts'
import { pathOf, type References } from './record-names.ts'
import {
  argumentsFor,
  type Body,
  clearableOf,
  fieldsOf,
  readBody,
  referencesOf,
  type Values,
} from './resource-flags.ts'
import { readList } from './values.ts'

export const idArgument = { id: { type: 'positional', required: true, description: 'Its id or name' } } as const

export const recordPath = ({ path }: Pick<Resource, 'path'>, id: string): string => pathOf(path, id)

/** What a command takes beside the fields of the record, and the fields that follow from it. */
export interface More {
  args: ArgsDef
  read(values: Values): Promise<Body>
  /** Called once the record is there, with what `read` gave. */
  done?(fields: Body): void
}

interface Options {
  input?: Input | undefined
  create?: More
  update?: More
  /** Of fields whose description does not say what they name. */
  references?: References
}

interface Making {
  input: Input
  more: More | undefined
  references: References
}

type Made = 'list' | 'get' | 'create' | 'update'

/** The commands by name; `delete` where records of the kind are deleted. */
export function resourceCommands(
  resource: Resource,
  terminal: Terminal,
  { input = processInput, create, update, references = {} }: Options = {},
): Record<Made, () => Command> & Partial<Record<'delete', () => Command>> {
  return {
    list: () => listOf(resource, terminal, references),
    get: () => getOf(resource, terminal),
    create: () => createOf(resource, terminal, { input, more: create, references }),
    update: () => updateOf(resource, terminal, { input, more: update, references }),
    ...(resource.summaries.delete === undefined ? {} : { delete: () => deleteOf(resource, terminal) }),
  }
}

type Listed = Pick<Resource, 'path' | 'plural' | 'columns' | 'filters' | 'flags'> & { summaries: { list: string } }

export function listOf(resource: Listed, terminal: Terminal, references: References = {}) {
  const { path, plural, columns, filters } = resource
  const fields = filters === undefined ? [] : fieldsOf(filters, resource.flags)
  return defineCommand({
    meta: { description: resource.summaries.list },
    args: { ...argumentsFor(fields, false), ...pageFlags, ...recordFlags },
    async run({ args }) {
      const api = connect(args, terminal)
      const chosen = await readBody(fields, args, { terminal, input: processInput, api })
      const query = { ...z.record(z.string(), z.string()).parse(chosen), ...pageQuery(args) }
      const request = { path, query, references: { ...referencesOf(fields), ...references } }
      const page = await readPage(api, request, { of: plural, all: args.all })
      await showPage(page, { of: plural, fields: columns, json: args.json, terminal })
    },
  })
}

const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)

export const getOf = (resource: Pick<Resource, 'path'> & { summaries: { get: string } }, terminal: Terminal) =>
  defineCommand({
    meta: { description: resource.summaries.get },
    args: {
      ...idArgument,
      output: {
        type: 'enum',
        alias: 'o',
        options: ['text', 'json', 'yaml'],
        description: 'The format; yaml is a file for apply, for kinds of records that files can hold',
      },
      ...recordFlags,
    },
    async run({ args }) {
      const api = connect(args, terminal)
      const record = await api.json({ path: recordPath(resource, args.id) }, z.looseObject({}))
      if (args.output !== 'yaml') return await showRecord(record, args.json || args.output === 'json', terminal)
      await terminal.write(await yamlOf(resource, record, api))
    },
  })

async function yamlOf({ path }: Pick<Resource, 'path'>, record: Body, api: Api): Promise<string> {
  const [{ kinds }, { exportedRecord }] = await Promise.all([
    import('../commands/apply/kinds/kinds.ts'),
    import('../commands/export/export.ts'),
  ])
  const kind = kinds.find((each) => each.path === path)
  if (kind !== undefined) return await exportedRecord(kind, record, api)
  const { stringify } = await import('yaml')
  return stringify(record, { lineWidth: 0 })
}

function createOf(resource: Resource, terminal: Terminal, { input, more, references }: Making) {
  const all = fieldsOf(resource.create, resource.flags)
  const named = { ...referencesOf(all), ...references }
  const chosen = idName(resource)
  const id = all.find(({ path, required }) => path.join() === chosen && required)
  const fields = all.filter((field) => field !== id)
  const chosenId = { type: 'positional', required: true, description: id?.schema.description ?? '' } as const
  return defineCommand({
    meta: { description: resource.summaries.create },
    args: {
      ...(id === undefined ? {} : { [chosen]: chosenId }),
      ...argumentsFor(fields, true),
      ...more?.args,
      ...recordFlags,
    },
    async run({ args }) {
      const sources = { terminal, input, api: connect(args, terminal) }
      const body = {
        ...(id === undefined ? {} : { [chosen]: args[chosen] }),
        ...emptyObjects(resource),
        ...(await readBody(fields, args, sources)),
        ...(await more?.read(args)),
      }
      await sendRecord({ method: 'POST', path: resource.path, body, references: named }, args, terminal)
      more?.done?.(body)
    },
  })
}

/** Objects that the API asks for and that no flag needs to fill. */
const emptyObjects = ({ flags = {} }: Resource): Body =>
  Object.fromEntries(
    Object.entries(flags).flatMap(([name, options]) => (isObject(options?.default) ? [[name, {}]] : [])),
  )

const isObject = (value: unknown): boolean => typeof value === 'object' && value !== null

function updateOf(resource: Resource, terminal: Terminal, { input, more, references }: Making) {
  const fields = fieldsOf(resource.update, resource.flags)
  const named = { ...referencesOf(fields), ...references }
  const clearable = clearableOf(resource.update)
  return defineCommand({
    meta: { description: resource.summaries.update },
    args: {
      ...idArgument,
      ...argumentsFor(fields, false),
      ...(clearable.length === 0 ? {} : clearFlag(clearable)),
      ...more?.args,
      ...recordFlags,
    },
    async run({ args }) {
      const sources = { terminal, input, api: connect(args, terminal) }
      const body = {
        ...(await readBody(fields, args, sources)),
        ...clearedFields(textOf(args.clear)),
        ...(await more?.read(args)),
      }
      requireChange(body)
      await sendRecord(
        { method: 'PATCH', path: recordPath(resource, args.id), body, references: named },
        args,
        terminal,
      )
    },
  })
}

export const clearFlag = <const Name extends string>(clearable: Name[]) =>
  ({
    clear: {
      type: 'enum',
      options: clearable,
      repeatable: true,
      description: 'Reset a field to its default (repeatable)',
    },
  }) as const

/** Fields that are cleared, as null. */
export const clearedFields = (text: string | undefined): Record<string, null> =>
  text === undefined
    ? {}
    : Object.fromEntries(readList('--clear', text).map((name) => [name.replaceAll('-', '_'), null]))

/** Throws `usage` where a change changes nothing. */
function requireChange(body: Body): void {
  if (Object.values(body).some((value) => value !== undefined)) return
  throw new Failure('usage', { message: 'Name at least one field to change: --help lists the options' })
}

type Deleted = Pick<Resource, 'path'> & { summaries: { delete?: string } }

export const deleteOf = (resource: Deleted, terminal: Terminal) =>
  defineCommand({
    meta: { description: resource.summaries.delete ?? '' },
    args: {
      ...idArgument,
      yes: { type: 'boolean', description: 'Confirm: this cannot be undone' },
      ...recordFlags,
    },
    async run({ args }) {
      await confirm(args.yes, `This deletes ${args.id}, which cannot be undone`, terminal)
      await sendRecord({ method: 'DELETE', path: recordPath(resource, args.id) }, args, terminal)
    },
  })
