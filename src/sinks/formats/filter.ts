import { eventSchema } from '../../events/event.ts'
import { type Condition, compileCondition } from '../../inspection/condition.ts'

const on = { variable: 'event', param: 'filter' }

/** Compiles the filter of a sink. Throws `invalid_parameter` for `filter` with the reason. */
export const compileFilter = (expression: string): Condition => compileCondition(expression, on)

/** Refuses a filter that can hold for no event. A stored one, perhaps of another version, is delivered by all the same. */
export function requireFilter(expression: string): void {
  compileCondition(expression, { ...on, schema: eventSchema })
}
