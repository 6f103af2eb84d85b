/** Labels say which files a record comes from: `GET /v1/labels`, and how `together` writes them. */
import { and, eq, sql } from 'drizzle-orm'
import { Elysia } from 'elysia'
import { z } from 'zod'
import type { Database } from '../../store/open.ts'
import { insert, query, remove, statement } from '../../store/query.ts'
import { recordLabels } from '../../store/schema/ledger/labels.ts'
import type { Statement } from '../../store/statement.ts'
import { conventions } from '../conventions.ts'
import { pageQuery, recordPage } from '../page.ts'

interface Labelled {
  path: string
  id: string
  label: string | null
}

/** Gives each record its label, or takes it away. */
export const labelled = (records: readonly Labelled[]): Statement[] =>
  records.map(({ path, id, label }) =>
    label === null
      ? statement(remove(recordLabels).where(and(eq(recordLabels.path, path), eq(recordLabels.recordId, id))))
      : statement(
          insert(recordLabels)
            .values({ path, recordId: id, label })
            .onConflictDoUpdate({ target: [recordLabels.path, recordLabels.recordId], set: { label } }),
        ),
  )

/** In the order of the primary key. A path has no blank. */
const place = sql<string>`${recordLabels.path} || ' ' || ${recordLabels.recordId}`

function isBehind(after: string) {
  const [path = '', recordId = ''] = after.split(/ (.*)/s)
  return sql`(${recordLabels.path}, ${recordLabels.recordId}) > (${path}, ${recordId})`
}

export const labelRoutes = (ledger: Database) =>
  new Elysia({ name: 'labels' }).use(conventions).get(
    '/v1/labels',
    async ({ query: { label, ...page } }) => {
      const { records, next_cursor } = await recordPage(page, {
        filters: { label },
        id: z.string(),
        read: (after, count) =>
          query(ledger)
            .select({ id: place, path: recordLabels.path, recordId: recordLabels.recordId, label: recordLabels.label })
            .from(recordLabels)
            .where(and(label === undefined ? undefined : eq(recordLabels.label, label), isBehind(after)))
            .orderBy(recordLabels.path, recordLabels.recordId)
            .limit(count),
        show: (rows) => rows.map(({ path, recordId, label: own }) => ({ path, id: recordId, label: own })),
      })
      return { labels: records, next_cursor }
    },
    {
      access: 'catalog:read',
      wholeOrganization: true,
      query: z.strictObject({ ...pageQuery, label: z.string().max(63).optional() }),
      response: z.object({
        labels: z.array(z.object({ path: z.string(), id: z.string(), label: z.string() })),
        next_cursor: z.string().nullable(),
      }),
      detail: { tags: ['Configuration'], summary: 'Lists which records carry which label of gatehouse apply' },
    },
  )
