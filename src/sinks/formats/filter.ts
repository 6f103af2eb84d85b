import { type Condition, compileCondition } from '../../inspection/condition.ts'

/** Compiles the filter of a sink. Throws `invalid_parameter` for `filter` with the reason. */
export const compileFilter = (expression: string): Condition =>
  compileCondition(expression, { variable: 'event', param: 'filter' })
