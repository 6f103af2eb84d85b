/** What the commands about records share: the call, and how a record or a page is shown. */
import { z } from 'zod'
import { Failure } from '../../src/failure.ts'
import { coloured } from '../terminal/colour.ts'
import { columns, printable } from '../terminal/table.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { type Api, type ApiRequest, createApi } from './api.ts'
import { type ConnectionFlags, connectionFlags, findConnection } from './profile.ts'

export const recordFlags = {
  json: { type: 'boolean', description: 'Print the answer as JSON' },
  ...connectionFlags,
} as const

export const pageFlags = {
  limit: { type: 'string', description: 'Records on a page, 1 to 100 (default 100)', valueHint: 'N' },
  cursor: { type: 'string', description: 'Continue after the last page' },
  all: { type: 'boolean', description: 'All pages' },
} as const

const mostOnPage = 100

/** The query that the flags of a page say. Throws `usage` for a limit that no page has. */
export function pageQuery(flags: { readonly limit: string | undefined; readonly cursor: string | undefined }) {
  const { limit, cursor } = flags
  if (limit !== undefined && !(/^[1-9]\d*$/.test(limit) && Number(limit) <= mostOnPage)) {
    throw new Failure('usage', { message: `--limit takes a whole number from 1 to ${mostOnPage}` })
  }
  return { limit, cursor }
}

/** One page of a list of records, or with `all` this and those after it as one. */
export async function readPage(
  api: Api,
  request: ApiRequest,
  { of, all }: { of: string; all: boolean | undefined },
): Promise<z.infer<typeof pageSchema>> {
  let page = await api.json(request, pageSchema)
  if (all !== true || page.next_cursor === null) return page
  const records = recordsOf(page, of)
  while (page.next_cursor !== null) {
    page = await api.json({ ...request, query: { ...request.query, cursor: page.next_cursor } }, pageSchema)
    for (const record of recordsOf(page, of)) records.push(record)
  }
  return { ...page, [of]: records }
}

const recordsOf = (page: z.infer<typeof pageSchema>, of: string) => z.array(z.looseObject({})).parse(page[of])

export const recordSchema = z.looseObject({ id: z.string() })

export const connect = (flags: ConnectionFlags, terminal: Terminal): Api =>
  createApi(findConnection(flags, terminal), fetch)

/** Makes a call and prints the one object in its answer. */
export async function sendRecord(
  request: ApiRequest,
  flags: ConnectionFlags & { readonly json: boolean | undefined },
  terminal: Terminal,
): Promise<void> {
  await showRecord(await connect(flags, terminal).json(request, z.looseObject({})), flags.json, terminal)
}

/** Prints one record: as JSON, or as lines of `name  value` without what is empty. */
export async function showRecord(
  record: Readonly<Record<string, unknown>>,
  json: boolean | undefined,
  terminal: Terminal,
): Promise<void> {
  if (json) return await terminal.write(`${JSON.stringify(record)}\n`)
  const lines = linesOf(record, '').map(([name, text]) => [name, coloured(printable(text), terminal)])
  await terminal.write(columns(lines))
}

/**
 * The members of a record, those of objects within it as `bindings.team_id`; nothing for what is empty. Objects of a list
 * that hold objects themselves have a line for each member: `effective_prices.0.source`.
 */
function linesOf(record: object, within: string): [name: string, text: string][] {
  return Object.entries(record).flatMap(([name, value]): [string, string][] => {
    const path = `${within}${name}`
    if (isObject(value) || (Array.isArray(value) && value.some(holdsObjects))) return linesOf(value, `${path}.`)
    const text = plain(value)
    return text === '' ? [] : [[path, text]]
  })
}

const isObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const holdsObjects = (value: unknown): boolean =>
  isObject(value) &&
  Object.values(value).some((member) => isObject(member) || (Array.isArray(member) && member.some(isObject)))

/** A value as text without JSON: a list as its entries, an object as its members that have a value. */
function plain(value: unknown): string {
  if (Array.isArray(value)) return value.map(plain).join(value.some(isObject) ? '; ' : ',')
  if (!isObject(value)) return value === null || value === undefined ? '' : String(value)
  return Object.entries(value)
    .map(([name, member]) => [name, plain(member)])
    .filter(([, text]) => text !== '')
    .map((member) => member.join('='))
    .join(' ')
}

/** Prints one page of records as a table of the named fields, or the answer as JSON. */
export async function showPage(
  page: z.infer<typeof pageSchema>,
  {
    of,
    fields,
    json,
    terminal,
  }: { of: string; fields: readonly string[]; json: boolean | undefined; terminal: Terminal },
): Promise<void> {
  if (json) return await terminal.write(`${JSON.stringify(page)}\n`)
  const records = recordsOf(page, of)
  if (records.length === 0) return await terminal.write(`No ${of.replaceAll('_', ' ')} found\n`)
  const rows = records.map((record) =>
    fields.map((field) => coloured(printable(plain(record[field]) || '-'), terminal)),
  )
  await terminal.write(columns([fields.map((field) => field.toUpperCase().replaceAll('_', ' ')), ...rows]))
  if (page.next_cursor !== null) terminal.note(`More: add --all, or --cursor ${page.next_cursor}`)
}

/** A page of any records. */
export const pageSchema = z.looseObject({ next_cursor: z.string().nullable() })
