/**
 * Short conditions in CEL on one variable: `claims.repository == "acme/app"`, `event.verdict == "deny"`. They have no
 * macros, no patterns and a bounded number of parts, so that one costs microseconds. An expression that fails, as one
 * that names a member which is not there, does not hold.
 */
import type { ASTNode, Environment } from '@marcbachmann/cel-js'
import { Failure } from '../failure.ts'

export const longestCondition = 2000
const limits = { maxAstNodes: 100, maxDepth: 20 }

export type Condition = (value: Readonly<Record<string, unknown>>) => boolean

const environments = new Map<string, Environment>()

/** Created, and the library loaded, with the first condition on a variable. */
function environmentOf(variable: string): Environment {
  const known = environments.get(variable)
  if (known !== undefined) return known
  const { Environment: Made }: typeof import('@marcbachmann/cel-js') = require('@marcbachmann/cel-js')
  const made = new Made({ limits }).registerVariable(variable, 'map<string, dyn>')
  environments.set(variable, made)
  return made
}

/** Compiles a condition on `variable`. Throws `invalid_parameter` for the field `param` with the reason. */
export function compileCondition(
  expression: string,
  { variable, param }: { variable: string; param: string },
): Condition {
  const refused = (reason: string, cause?: unknown): Failure =>
    new Failure('invalid_parameter', { param, message: `The ${param} ${reason}`, cause })
  if (expression.length > longestCondition) throw refused(`is longer than ${longestCondition} characters`)
  const evaluate = parsed(expression, variable, refused)
  requireSimple(evaluate.ast, refused)
  const { valid, type, error } = evaluate.check()
  if (!valid) throw refused(reasonOf(error), error)
  if (type !== 'bool') throw refused(`gives ${type}, not true or false: compare the member with a value`)
  return (value) => {
    try {
      return evaluate({ [variable]: value }) === true
    } catch {
      return false
    }
  }
}

type Refuse = (reason: string, cause?: unknown) => Failure

function parsed(expression: string, variable: string, refused: Refuse) {
  try {
    return environmentOf(variable).parse(expression)
  } catch (error) {
    throw refused(reasonOf(error), error)
  }
}

const unbounded: ReadonlySet<unknown> = new Set(['all', 'exists', 'exists_one', 'map', 'filter', 'matches'])

/** Throws for calls whose cost is not bounded by the length of a member. */
function requireSimple(root: ASTNode, refused: Refuse): void {
  const visit = (value: unknown): void => {
    if (Array.isArray(value)) for (const each of value) visit(each)
    if (typeof value !== 'object' || value === null || !('op' in value) || !('args' in value)) return
    const [name] = Array.isArray(value.args) ? value.args : []
    if (value.op === 'id' && value.args === 'cel') throw refused('names cel, which is not supported')
    if ((value.op === 'rcall' || value.op === 'call') && unbounded.has(name)) {
      throw refused(`uses ${String(name)}(), which is not supported here: use ==, in, startsWith() and endsWith()`)
    }
    visit(value.args)
  }
  visit(root)
}

const reasonOf = (error: unknown): string =>
  `is not valid: ${error instanceof Error ? (error.message.split('\n')[0] ?? '') : 'unknown'}`
