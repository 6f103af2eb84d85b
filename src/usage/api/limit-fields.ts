/** Fields that budgets, consumer groups and access policies share. */
import { z } from 'zod'
import { refersTo } from '../../api/resource.ts'
import { nameText } from '../../identity/free-text.ts'

export const limitName = nameText(100).describe('What it is called')

const rate = z.number().int().min(1).max(1_000_000_000)

export const rateFields = {
  requests_per_minute: rate.describe('The most requests a minute').nullable().optional(),
  tokens_per_minute: rate.describe('The most model tokens a minute').nullable().optional(),
}

export const rateRecord = { requests_per_minute: z.number().nullable(), tokens_per_minute: z.number().nullable() }

/** Given when a limit is made, and never changed (usage/README.md, Attribution). */
export const per = z
  .string()
  .max(32)
  .meta(refersTo('/v1/attribution-dimensions', 'name'))
  .nullable()
  .default(null)
  .describe('The dimension of which each value has the limit for itself, such as customer')

/** What every record of a limit has beside what it limits. */
export const identified = { id: z.string(), name: z.string() }
export const versioned = { version: z.number().int(), created_at: z.iso.datetime() }
