/** Which dimensions of attribution the organization declares, for what sums up by them. */
import { Failure } from '../../failure.ts'
import { nearest } from '../../lib/text/nearest.ts'
import type { Reader } from '../../store/open.ts'
import { query } from '../../store/query.ts'
import { attributionDimensions } from '../../store/schema/state/limits.ts'
import { dimensionPrefix } from '../rollups/rollup.ts'

/** Throws `invalid_parameter` where one of these, such as `dimension:customer`, is not declared. Others are let through. */
export const requireDeclared = (state: Reader, dimensions: Iterable<string>): Promise<void> =>
  requireAmong(state, dimensions, (dimension) => dimension.deleted === 0)

/** The same, and lets deleted ones through: their sums and events are kept. `param`: the field at fault. */
export const requireEverDeclared = (state: Reader, dimensions: Iterable<string>, param = 'by'): Promise<void> =>
  requireAmong(state, dimensions, () => true, param)

async function requireAmong(
  state: Reader,
  dimensions: Iterable<string>,
  isAccepted: (dimension: { deleted: number }) => boolean,
  param = 'by',
): Promise<void> {
  const asked = [...dimensions].filter((dimension) => dimension.startsWith(dimensionPrefix))
  if (asked.length === 0) return
  const { name, deleted } = attributionDimensions
  const rows = await query(state).select({ name, deleted }).from(attributionDimensions).orderBy(name)
  const accepted = [...new Set(rows.filter(isAccepted).map((row) => dimensionPrefix + row.name))]
  const unknown = asked.find((dimension) => !accepted.includes(dimension))
  if (unknown === undefined) return
  const near = nearest(unknown, accepted)
  const hint = near === null ? '' : `. Did you mean ${near.slice(dimensionPrefix.length)}?`
  const known = accepted.length === 0 ? 'none is declared' : `declared are ${accepted.join(', ')}${hint}`
  const message = `There is no dimension of attribution ${JSON.stringify(unknown.slice(dimensionPrefix.length))}: ${known}`
  throw new Failure('invalid_parameter', { param, message })
}
