/**
 * Short conditions in CEL on one variable: `claims.repository == "acme/app"`, `event.verdict == "deny"`. They have no
 * macros, no patterns and a bounded number of parts, so that one costs microseconds. An expression that fails, as one
 * that names a member which is not there, does not hold.
 */
import type { ASTNode, Environment } from '@marcbachmann/cel-js'
import { z } from 'zod'
import { Failure } from '../failure.ts'
import { nearest } from '../lib/text/nearest.ts'
import { bare, typedEnvironment } from './condition-types.ts'

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

interface ConditionOptions {
  variable: string
  /** The field that an error names. */
  param: string
  /**
   * What the variable holds; a condition on a member that it cannot have, or a comparison with a value that the member
   * cannot have, is refused. Absent: it may hold anything.
   */
  schema?: z.ZodType
}

/** Compiles a condition on `variable`. Throws `invalid_parameter` for the field `param` with the reason. */
export function compileCondition(expression: string, { variable, param, schema }: ConditionOptions): Condition {
  const refused = (reason: string, cause?: unknown): Failure =>
    new Failure('invalid_parameter', { param, message: `The ${param} ${reason}`, cause })
  if (expression.length > longestCondition) throw refused(`is longer than ${longestCondition} characters`)
  const evaluate = parsed(expression, variable, refused)
  requireSimple(evaluate.ast, refused)
  if (schema !== undefined) {
    requireMembers(evaluate.ast, { variable, schema }, refused)
    requirePossibleValues(evaluate.ast, { variable, schema }, refused)
    requirePossibleParts(evaluate.ast, { variable, schema }, refused)
  }
  const { valid, type, error } =
    schema === undefined ? evaluate.check() : typedEnvironment(variable, schema, limits).check(expression)
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

interface MemberOptions {
  variable: string
  schema: z.ZodType
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
  for (const { op, args } of nodesOf(root)) {
    const [name] = Array.isArray(args) ? args : []
    if (op === 'id' && args === 'cel') throw refused('names cel, which is not supported')
    if ((op === 'rcall' || op === 'call') && unbounded.has(name)) {
      throw refused(`uses ${String(name)}(), which is not supported here: use ==, in, startsWith() and endsWith()`)
    }
  }
}

interface Node {
  op: unknown
  args: unknown
}

function* nodesOf(value: unknown): Generator<Node, void, undefined> {
  if (Array.isArray(value)) for (const each of value) yield* nodesOf(each)
  if (!isNode(value)) return
  yield value
  yield* nodesOf(value.args)
}

const isNode = (value: unknown): value is Node =>
  typeof value === 'object' && value !== null && 'op' in value && 'args' in value

/** Throws for a member that what the schema describes cannot have: `event.modle`, `event["modle"]`, `"modle" in event`. */
function requireMembers(root: ASTNode, options: MemberOptions, refused: Refuse): void {
  for (const node of nodesOf(root)) {
    const [holder, name] = memberOf(node) ?? []
    const place = placeOf(holder, options)
    if (place === null || typeof name !== 'string' || !(place.schema instanceof z.ZodObject)) continue
    const { shape, def } = place.schema
    // Of an object that may hold more than is described nobody can say what it lacks.
    if (Object.hasOwn(shape, name) || def.catchall instanceof z.ZodUnknown) continue
    const names = Object.keys(shape)
    const near = nearest(name, names)
    const hint = near === null ? '' : `. Did you mean ${near}?`
    throw refused(
      `names ${place.path}.${name}, which does not exist: ${place.path} has ${names.join(', ') || 'no members'}${hint}`,
    )
  }
}

/** Throws for a comparison of a member with a text that is none of its values: `event.verdict == "denied"`. */
function requirePossibleValues(root: ASTNode, options: MemberOptions, refused: Refuse): void {
  for (const { op, args } of nodesOf(root)) {
    if (!Array.isArray(args) || (op !== '==' && op !== '!=' && op !== 'in')) continue
    for (const [one, other] of [args, args.toReversed()]) {
      const place = placeOf(one, options)
      if (!(place?.schema instanceof z.ZodEnum)) continue
      const { options: possible } = place.schema
      const wrong = textsIn(other).find((text) => !possible.includes(text))
      if (wrong === undefined) continue
      throw refused(`compares ${place.path} with "${wrong}", which it never is: it is ${oneOf(possible)}`)
    }
  }
}

const partTests: Readonly<Record<string, (value: string, part: string) => boolean>> = {
  startsWith: (value, part) => value.startsWith(part),
  endsWith: (value, part) => value.endsWith(part),
  contains: (value, part) => value.includes(part),
}

/** Throws for a part that no value of a member has: `event.event_type.startsWith("gatway.")`. */
function requirePossibleParts(root: ASTNode, options: MemberOptions, refused: Refuse): void {
  for (const { op, args } of nodesOf(root)) {
    if (op !== 'rcall' || !Array.isArray(args)) continue
    const [name, receiver, [part] = []] = args
    const place = placeOf(receiver, options)
    const [text] = textsIn(part)
    const holds = Object.hasOwn(partTests, name) ? partTests[name] : undefined
    if (!(place?.schema instanceof z.ZodEnum) || text === undefined || holds === undefined) continue
    const possible = place.schema.options.map(String)
    if (possible.some((value) => holds(value, text))) continue
    throw refused(`asks for ${place.path}.${name}("${text}"), which holds for none: it is ${oneOf(possible)}`)
  }
}

/** More values than these are counted only. */
const valuesNamed = 20

const oneOf = (values: readonly unknown[]): string =>
  values.length <= valuesNamed
    ? `one of ${values.join(', ')}`
    : `one of ${values.length} values such as ${values.slice(0, 3).join(', ')}`

/** The literal texts of a value or a list. */
function textsIn(node: unknown): string[] {
  if (!isNode(node)) return []
  if (node.op === 'value') return typeof node.args === 'string' ? [node.args] : []
  return node.op === 'list' && Array.isArray(node.args) ? node.args.flatMap(textsIn) : []
}

/** What a node reads, or asks for, of what: a member by its name. */
function memberOf({ op, args }: Node): [holder: unknown, name: unknown] | null {
  if (!Array.isArray(args)) return null
  const nameOf = (value: unknown) => (isNode(value) && value.op === 'value' ? value.args : value)
  if (op === '.' || op === '.?' || op === '[]' || op === '[?]') return [args[0], nameOf(args[1])]
  return op === 'in' ? [args[1], nameOf(args[0])] : null
}

interface SchemaPlace {
  path: string
  schema: z.ZodType
}

/** Where a node leads from the variable, and what is there; null where the schema does not say. */
function placeOf(node: unknown, { variable, schema }: MemberOptions): SchemaPlace | null {
  if (!isNode(node)) return null
  if (node.op === 'id') return node.args === variable ? { path: variable, schema: bare(schema) } : null
  const [holder, name] = node.op === 'in' ? [] : (memberOf(node) ?? [])
  const place = placeOf(holder, { variable, schema })
  if (place === null || typeof name !== 'string' || !(place.schema instanceof z.ZodObject)) return null
  const member: unknown = Object.hasOwn(place.schema.shape, name) ? place.schema.shape[name] : undefined
  return member instanceof z.ZodType ? { path: `${place.path}.${name}`, schema: bare(member) } : null
}

const reasonOf = (error: unknown): string =>
  `is not valid: ${error instanceof Error ? (error.message.split('\n')[0] ?? '') : 'unknown'}`
