/**
 * Conditions on the claims of a JWT in CEL (handbook/workload-identities.md): `claims.repository == "acme/app"`. They
 * have no macros, no patterns and a bounded number of parts, and a JWT has a bounded length, so that one costs
 * microseconds. An expression that fails, as one that names a claim which is not there, does not hold.
 */
import type { ASTNode, Environment } from '@marcbachmann/cel-js'
import { Failure } from '../failure.ts'

export const longestCondition = 2000
const limits = { maxAstNodes: 100, maxDepth: 20 }

export type Claims = Readonly<Record<string, unknown>>
export type ClaimsCondition = (claims: Claims) => boolean

let environment: Environment | null = null

/** Created, and the library loaded, with the first condition. */
function celEnvironment(): Environment {
  if (environment !== null) return environment
  const { Environment: Made }: typeof import('@marcbachmann/cel-js') = require('@marcbachmann/cel-js')
  environment = new Made({ limits }).registerVariable('claims', 'map<string, dyn>')
  return environment
}

/** Compiles a condition. Throws `invalid_parameter` for `condition` with the reason. */
export function compileClaims(expression: string): ClaimsCondition {
  if (expression.length > longestCondition) throw refused(`is longer than ${longestCondition} characters`)
  const evaluate = parsed(expression)
  requireSimple(evaluate.ast)
  const { valid, type, error } = evaluate.check()
  if (!valid) throw refused(reasonOf(error), error)
  if (type !== 'bool') throw refused(`gives ${type}, not true or false: compare the claim with a value`)
  return (claims) => {
    try {
      return evaluate({ claims }) === true
    } catch {
      return false
    }
  }
}

function parsed(expression: string) {
  try {
    return celEnvironment().parse(expression)
  } catch (error) {
    throw refused(reasonOf(error), error)
  }
}

const unbounded: ReadonlySet<unknown> = new Set(['all', 'exists', 'exists_one', 'map', 'filter', 'matches'])

/** Throws for calls whose cost is not bounded by the length of a claim. */
function requireSimple(root: ASTNode): void {
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

const refused = (reason: string, cause?: unknown): Failure =>
  new Failure('invalid_parameter', { param: 'condition', message: `The condition ${reason}`, cause })
