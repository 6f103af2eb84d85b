import { z } from 'zod'
import { attributionSchema, eventSchema } from '../../events/event.ts'
import { type Condition, compileCondition } from '../../inspection/condition.ts'

const on = { variable: 'event', param: 'filter' }

/** Compiles the filter of a sink. Throws `invalid_parameter` for `filter` with the reason. */
export const compileFilter = (expression: string): Condition => compileCondition(expression, on)

/**
 * Refuses a filter that can hold for no event. `declared`: the names of the dimensions of attribution, or null where they
 * are not known. A stored filter, perhaps of another version, is delivered by all the same.
 */
export function requireFilter(expression: string, declared: readonly string[] | null): void {
  compileCondition(expression, { ...on, schema: declared === null ? eventSchema : withDimensions(declared) })
}

const withDimensions = (names: readonly string[]) => {
  const dimensions = z.object(Object.fromEntries(names.map((name) => [name, z.string().optional()]))).optional()
  return eventSchema.extend({ event_attribution: attributionSchema.extend({ dimensions }) })
}
