/**
 * Cursors of pages that are ordered by id: the last id seen and a digest of the query it belongs to. Not secret, only
 * of no use with another query (contract section 2, Pages).
 */
import { z } from 'zod'
import { Failure } from '../failure.ts'

const cursorSchema = z.strictObject({ after: z.string(), query: z.string() })

/** `query` says what the page was of; equal queries must have equal JSON. */
export const writeCursor = (after: string, query: unknown): string =>
  Buffer.from(JSON.stringify({ after, query: digestOf(query) })).toString('base64url')

/**
 * The id after which the page goes on; `id` is the form of ids in this list. Throws `invalid_cursor` for what is no
 * cursor, or one of another query.
 */
export function readCursor(cursor: string, query: unknown, id: z.ZodType<string> = z.uuid()): string {
  const parsed = cursorSchema.safeParse(jsonOrNull(Buffer.from(cursor, 'base64url').toString()))
  const fits = parsed.success && parsed.data.query === digestOf(query) && id.safeParse(parsed.data.after).success
  if (!fits) throw new Failure('invalid_cursor', { param: 'cursor' })
  return parsed.data.after
}

function jsonOrNull(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // A cursor is the caller's word: what is no JSON is simply no cursor.
    return null
  }
}

const digestOf = (query: unknown): string =>
  new Bun.CryptoHasher('sha256').update(JSON.stringify(query)).digest('hex').slice(0, 16)
