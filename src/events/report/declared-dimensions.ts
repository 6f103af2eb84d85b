/** Which dimensions of attribution the organization declares, for what sums up by them. */
import { eq } from 'drizzle-orm'
import { Failure } from '../../failure.ts'
import type { Reader } from '../../store/open.ts'
import { query } from '../../store/query.ts'
import { attributionDimensions } from '../../store/schema/state/limits.ts'

const prefix = 'dimension:'

/** Throws `invalid_parameter` where one of these, such as `dimension:customer`, is not declared. Others are let through. */
export async function requireDeclared(state: Reader, dimensions: Iterable<string>): Promise<void> {
  const asked = [...dimensions].filter((dimension) => dimension.startsWith(prefix))
  if (asked.length === 0) return
  const { name, deleted } = attributionDimensions
  const rows = await query(state).select({ name }).from(attributionDimensions).where(eq(deleted, 0)).orderBy(name)
  const declared = rows.map((row) => prefix + row.name)
  const unknown = asked.find((dimension) => !declared.includes(dimension))
  if (unknown === undefined) return
  const known = declared.length === 0 ? 'none is declared' : `declared are ${declared.join(', ')}`
  const message = `There is no dimension of attribution ${JSON.stringify(unknown.slice(prefix.length))}: ${known}`
  throw new Failure('invalid_parameter', { param: 'by', message })
}
