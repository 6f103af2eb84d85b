/** Pages of records (handbook/reference/http.md): in the order they were made, by a cursor bound to its filters. */
import { z } from 'zod'
import { readCursor, writeCursor } from './cursor.ts'

const bounds = 'Write a whole number from 1 to 100'

/** How many records a page has at most: digits and nothing else, because `Number` takes 1e1, 0x10 and blanks too. */
export const pageLimit = z
  .preprocess(
    (given) => (typeof given === 'string' && /^[1-9]\d{0,2}$/.test(given) ? Number(given) : given),
    z.number(bounds).int().min(1).max(100, bounds),
  )
  .default(100)
  .meta({ type: 'integer', minimum: 1, maximum: 100 })

/** What lists of named records can be limited to (`isNamed` of store/query.ts). */
export const nameFilter = z
  .string()
  .min(1)
  .max(200)
  .optional()
  .describe('Only those with this in their name, or with these 8 or more characters in their id')

export const pageQuery = {
  limit: pageLimit,
  cursor: z.string().max(500).optional(),
}

/** What every list can be asked for. */
export interface PageQuery {
  limit: number
  cursor?: string | undefined
}

export interface Page<Shown> {
  records: Shown[]
  next_cursor: string | null
}

type Filters = Record<string, string | undefined>

/** The id after which the page starts, or null for the first. Throws `invalid_cursor` where the filters are others. */
export const startOf = (cursor: string | undefined, filters: Filters, id?: z.ZodType<string>): string | null =>
  cursor === undefined ? null : readCursor(cursor, filters, id)

/** Cuts one row more than the limit to a page and says where the next one starts. */
export function cutPage<Row extends { id: string }>(
  rows: readonly Row[],
  limit: number,
  filters: Filters,
): { rows: Row[]; next_cursor: string | null } {
  const page = rows.slice(0, limit)
  const last = page.at(-1)
  if (rows.length <= limit || last === undefined) return { rows: page, next_cursor: null }
  return { rows: page, next_cursor: writeCursor(last.id, filters) }
}

interface Source<Row, Shown> {
  /** A cursor holds for a list with the same filters. */
  filters: Filters
  /** The form of the ids; UUIDs where it is left out. */
  id?: z.ZodType<string>
  /** At most `count` rows after an id, in the order of ids. */
  read(after: string, count: number): Promise<Row[]>
  show(rows: Row[]): Shown[] | Promise<Shown[]>
}

/** Reads and shows one page of records. */
export async function recordPage<Row extends { id: string }, Shown>(
  { limit, cursor }: PageQuery,
  { filters, id, read, show }: Source<Row, Shown>,
): Promise<Page<Shown>> {
  const found = await read(startOf(cursor, filters, id) ?? '', limit + 1)
  const { rows, next_cursor } = cutPage(found, limit, filters)
  return { records: await show(rows), next_cursor }
}
