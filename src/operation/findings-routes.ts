/** `/v1/findings`: what doctor found when it last looked by itself. */
import { Elysia } from 'elysia'
import { z } from 'zod'
import { conventions } from '../api/conventions.ts'
import { timestamp } from '../lib/clock.ts'
import type { Database } from '../store/open.ts'
import { readReport } from './doctor-report.ts'

const findingSchema = z.object({
  check: z.string().describe('The name of the check'),
  level: z.enum(['warn', 'fail']),
  what: z.string(),
  todo: z.string().describe('What to do about it'),
  since: z.iso.datetime().describe('When it was first found, of all looks since'),
})
export type FoundByDoctor = z.infer<typeof findingSchema>

export const findingsRoutes = ({ ledger }: { ledger: Database }) =>
  new Elysia({ name: 'findings' }).use(conventions).get(
    '/v1/findings',
    async () => {
      const { examinedAt, findings } = await readReport(ledger)
      return {
        examined_at: examinedAt === null ? null : timestamp(examinedAt),
        findings: findings.map(({ check, level, what, todo, since }) => ({
          ...{ check, level, what, todo },
          since: timestamp(since),
        })),
        next_cursor: null,
      }
    },
    {
      access: 'catalog:read',
      wholeOrganization: true,
      query: z.strictObject({}),
      response: z.object({
        examined_at: z.iso.datetime().nullable().describe('Null before the first look'),
        findings: z.array(findingSchema),
        next_cursor: z.null().describe('All are on one page'),
      }),
      detail: { tags: ['Operation'], summary: 'Lists what doctor found when it last looked by itself' },
    },
  )
