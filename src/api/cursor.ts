/**
 * Cursors: where a page ended, with a digest of that and of the query it belongs to. Not secret, only of no use with
 * another query (handbook/reference/http.md) or once a character of it is another.
 */
import { z } from 'zod'
import { Failure } from '../failure.ts'

/** `query` identifies the listed query; equal queries must have equal JSON. */
export const sealCursor = (position: Readonly<Record<string, string | number>>, query: unknown): string =>
  Buffer.from(JSON.stringify({ ...position, query: digestOf(position, query) })).toString('base64url')

/** The end of the last page. Throws `invalid_cursor` for an invalid cursor, or one of another query. */
export function openCursor<Position>(cursor: string, query: unknown, position: z.ZodType<Position>): Position {
  const { query: digest, ...rest } = jsonObject(Buffer.from(cursor, 'base64url').toString())
  const parsed = position.safeParse(rest)
  // Decoding passes over what does not belong there: only the very text that was given counts.
  const given = Buffer.from(JSON.stringify({ ...rest, query: digest })).toString('base64url') === cursor
  if (!parsed.success || !given || digest !== digestOf(rest, query))
    throw new Failure('invalid_cursor', { param: 'cursor' })
  return parsed.data
}

/** The cursor of a page that is ordered by id: the last one seen. */
export const writeCursor = (after: string, query: unknown): string => sealCursor({ after }, query)

/** The id after which the page goes on; `id` is the form of ids in this list. Throws `invalid_cursor`. */
export const readCursor = (cursor: string, query: unknown, id: z.ZodType<string> = z.uuid()): string =>
  openCursor(cursor, query, z.strictObject({ after: id })).after

function jsonObject(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {}
  } catch {
    // A caller may send anything as a cursor: text that is not JSON is an invalid cursor.
    return {}
  }
}

const digestOf = (position: unknown, query: unknown): string =>
  new Bun.CryptoHasher('sha256')
    .update(JSON.stringify([position, query]))
    .digest('hex')
    .slice(0, 16)
