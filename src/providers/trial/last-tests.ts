/** What the last connection test of each provider came to. */
import { and, desc, eq, gte } from 'drizzle-orm'
import { z } from 'zod'
import { answeredSince } from '../../events/answered-since.ts'
import { timestamp } from '../../lib/clock.ts'
import { insert, isOneOf, query, remove, statement } from '../../store/query.ts'
import { providerTests } from '../../store/schema/ledger/operation.ts'
import { providers } from '../../store/schema/state/catalog.ts'
import type { Statement } from '../../store/statement.ts'
import type { CatalogDependencies } from '../catalog/catalog-change.ts'

/** More than anybody can look after. */
const failedAtMost = 100
/** What an older test found says nothing of today. It bounds how far back the sums are read. */
const failedDays = 30

export function keepTest(providerId: string, { ok, at }: { ok: boolean; at: number }): Statement {
  const result = { ok: ok ? 1 : 0, at }
  return statement(
    insert(providerTests)
      .values({ providerId, ...result })
      .onConflictDoUpdate({ target: providerTests.providerId, set: result }),
  )
}

export const forgetTest = (providerId: string): Statement =>
  statement(remove(providerTests).where(eq(providerTests.providerId, providerId)))

export const failedTestSchema = z.object({
  provider_id: z.string(),
  name: z.string().describe('Of the provider'),
  at: z.iso.datetime().describe('When it was tested'),
})
export const failedTestsReply = z.object({
  failed_tests: z
    .array(failedTestSchema)
    .describe(
      `Of the last ${failedDays} days, the newest first, ${failedAtMost} at most; of providers that have answered no request since`,
    ),
})

export async function failedTests({
  state,
  ledger,
  clock,
}: Pick<CatalogDependencies, 'state' | 'ledger' | 'clock'>): Promise<z.infer<typeof failedTestsReply>> {
  const failed = await query(ledger)
    .select({ id: providerTests.providerId, at: providerTests.at })
    .from(providerTests)
    .where(and(eq(providerTests.ok, 0), gte(providerTests.at, clock.now() - failedDays * 86_400_000)))
    .orderBy(desc(providerTests.at))
    .limit(failedAtMost)
  const ids = failed.map(({ id }) => id)
  const named = await query(state)
    .select({ id: providers.id, name: providers.name })
    .from(providers)
    .where(and(isOneOf(providers.id, ids), eq(providers.deleted, 0)))
  const names = new Map(named.map(({ id, name }) => [id, name]))
  const tests = failed.flatMap(({ id, at }) => {
    const name = names.get(id)
    return name === undefined ? [] : [{ id, name, at }]
  })
  const answered = await answeredSince(
    ledger,
    tests.map(({ name, at }) => ({ name, since: at })),
  )
  return {
    failed_tests: tests
      .filter(({ name }) => !answered.has(name))
      .map(({ id, name, at }) => ({ provider_id: id, name, at: timestamp(at) })),
  }
}
