/** Pages of people and teams (contract section 2): in the order they were made, by a cursor bound to its filters. */
import { z } from 'zod'
import { Failure } from '../failure.ts'
import { isUuid } from '../lib/ids.ts'

export const pageQuery = {
  limit: z.coerce.number().int().min(1).max(100).default(100),
  cursor: z.string().max(500).optional(),
}

const fingerprint = (filters: Record<string, string | undefined>): string =>
  new Bun.CryptoHasher('sha256').update(JSON.stringify(filters)).digest('base64url').slice(0, 16)

/** The id after which the page starts, or null for the first. Throws `invalid_cursor` where the filters are others. */
export function startOf(cursor: string | undefined, filters: Record<string, string | undefined>): string | null {
  if (cursor === undefined) return null
  const [id = '', bound, ...rest] = Buffer.from(cursor, 'base64url').toString('latin1').split('.')
  if (!isUuid(id) || bound !== fingerprint(filters) || rest.length > 0) {
    throw new Failure('invalid_cursor', { param: 'cursor' })
  }
  return id
}

/** Cuts one row more than the limit to a page and says where the next one starts. */
export function cutPage<Row extends { id: string }>(
  rows: readonly Row[],
  limit: number,
  filters: Record<string, string | undefined>,
): { rows: Row[]; next_cursor: string | null } {
  const page = rows.slice(0, limit)
  const last = page.at(-1)
  if (rows.length <= limit || last === undefined) return { rows: page, next_cursor: null }
  return { rows: page, next_cursor: Buffer.from(`${last.id}.${fingerprint(filters)}`).toString('base64url') }
}

/** Throws `version_mismatch` where `If-Match` (RFC 9110 section 13.1.1) names another version than the present one. */
export function requireVersion(headers: Headers, version: number): void {
  const sent = headers.get('if-match')
  if (sent === null || sent.trim() === '*') return
  const tags = sent.split(',').map((tag) => tag.trim())
  if (!tags.includes(entityTag(version))) throw new Failure('version_mismatch')
}

export const entityTag = (version: number): string => `"${version}"`
