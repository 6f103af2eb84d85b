/**
 * Conditions in CEL (`when`, policies/README.md): parsed, type-checked and bounded in cost when a policy is saved, then
 * evaluated for each request by the library: 30 to 100 ns for a comparison or two.
 *
 * An expression cannot loop but over a list of the request, and its cost is at most linear in the request: a macro
 * (`exists`, `all`, `map`, …) may neither stand in another nor name the long texts and lists outside it, in whatever
 * spelling. `matches` takes a literal pattern in the syntax of pattern filters (`inspection/regex/pattern-syntax.ts`)
 * and uses their engine, which is linear in the text; the library's own one backtracks. An expression has at most
 * 2000 characters and 200 parts. Its macros visit a bounded number of elements, and a pattern is looked for in a long
 * text in turns (`long-searches.ts`): one thread serves all callers.
 *
 * What fails while it is evaluated (`request.headers["x"]` where there is no such header: test with `"x" in
 * request.headers` first) makes its policy broken, as CEL has it; `when_broken` decides.
 */
import type { ASTNode, Environment } from '@marcbachmann/cel-js'
import { LRUCache } from 'lru-cache'
import { Failure } from '../../failure.ts'
import { matcherOf, type TextMatcher } from '../../inspection/detectors/text-matcher.ts'
import { patternDetector } from '../../inspection/regex/pattern-detector.ts'
import { WorkBudgetExceeded } from '../../inspection/work-budget.ts'
import type { PolicyStage } from '../../languages/families.ts'
import {
  MessageView,
  ModelView,
  type PolicyContext,
  RequestView,
  ResponseView,
  TokenView,
  ToolView,
} from './context.ts'
import { isFound, withSearches } from './long-searches.ts'

/** Whether a policy applies. Throws if the expression fails on this context. */
export type Condition = (context: PolicyContext) => boolean

export const maxWhenLength = 2000
const limits = { maxAstNodes: 200, maxDepth: 40 }
export const linearMatches = 'matchesLinear'
/** To count a text's characters, the library creates a list of them. */
const linearSize = 'sizeLinear'

let countedLast = { text: '', codePoints: 0 }

/** The count of the last text is cached, because an expression may ask again and again. */
function codePointsOf(text: string): number {
  if (countedLast.text === text) return countedLast.codePoints
  let codePoints = text.length
  for (let at = 1; at < text.length; at++) {
    const unit = text.charCodeAt(at)
    if (unit >= 0xdc00 && unit < 0xe000 && (text.charCodeAt(at - 1) & 0xfc00) === 0xd800) codePoints--
  }
  countedLast = { text, codePoints }
  return codePoints
}

const patterns = new LRUCache<string, TextMatcher>({ max: 1000 })
/** A condition has a few patterns and a filter up to 200, so each may cache fewer steps: some 100 kB. */
const stepsKept = 2000

/** Created, and the library loaded, with the first condition: most starts have none. */
function once<Value>(make: () => Value): () => Value {
  let made: Value | null = null
  return () => {
    made ??= make()
    return made
  }
}

const celLibrary = (): typeof import('@marcbachmann/cel-js') => require('@marcbachmann/cel-js')

const requestOnly = once(() =>
  new (celLibrary().Environment)({ limits })
    .registerType('Message', { ctor: MessageView, fields: { role: 'string', text: 'string' } })
    .registerType('Tool', { ctor: ToolView, fields: { name: 'string', arguments: 'map<string, dyn>' } })
    .registerType('Request', {
      ctor: RequestView,
      fields: {
        family: 'string',
        model: 'string',
        text: 'string',
        messages: 'list<Message>',
        tools: 'list<string>',
        stream: 'bool',
        headers: 'map<string, string>',
        session_id: 'string',
        tool: 'Tool',
      },
    })
    .registerType('Token', {
      ctor: TokenView,
      fields: {
        id: 'string',
        purpose: 'string',
        roles: 'list<string>',
        team_id: 'string',
        user_id: 'string',
        gateway_id: 'string',
        metadata: 'map<string, string>',
      },
    })
    .registerType('Model', { ctor: ModelView, fields: { id: 'string', provider: 'string' } })
    .registerVariable('request', 'Request')
    .registerVariable('token', 'Token')
    .registerVariable('model', 'Model')
    .registerVariable('now', 'google.protobuf.Timestamp')
    .registerFunction(`string.${linearMatches}(string): bool`, (text: string, pattern: string) =>
      isFound(text, compiledPattern(pattern)),
    )
    .registerFunction(`${linearSize}(string): int`, (text: string) => BigInt(codePointsOf(text)))
    .registerFunction(`string.${linearSize}(): int`, (text: string) => BigInt(codePointsOf(text))),
)

const withResponse = once(() =>
  requestOnly()
    .clone()
    .registerType('Response', {
      ctor: ResponseView,
      fields: { text: 'string', tool_calls: 'list<string>', status: 'int' },
    })
    .registerVariable('response', 'Response'),
)

/**
 * Compiles a condition for a policy of these stages; `response` is known only if none of them precedes the answer.
 * Throws `invalid_parameter` for `when` with the position in the message.
 */
export function compileWhen(expression: string, stages: readonly PolicyStage[]): Condition {
  if (expression.length > maxWhenLength) throw refused(`is longer than ${maxWhenLength} characters`, 0)
  const { evaluate, macroCount } = parseWhen(expression, stages)
  const { valid, type, error } = evaluate.check()
  if (!valid) throw refused(reasonOf(error), placeOf(error), error)
  if (type !== 'bool') throw refused(`gives ${type}, not true or false`, 0)
  const lists = Object.entries(longLists).flatMap(([name, sizeOf]) =>
    macroCount > 0 && expression.includes(name) ? [sizeOf] : [],
  )
  const evaluated: Condition = (context) => evaluate(context) === true
  const condition: Condition = expression.includes('matches')
    ? (context) => withSearches(context, evaluated)
    : evaluated
  if (lists.length === 0) return condition
  return (context) => {
    for (const sizeOf of lists) if (sizeOf(context) * macroCount > mostElements) throw new WorkBudgetExceeded()
    return condition(context)
  }
}

/** A condition, or a part of one that gives any value: parsed and bounded in cost. Throws as `compileWhen` does. */
export function parseWhen(expression: string, stages: readonly PolicyStage[]) {
  const environment = stages.includes('pre_request') ? requestOnly() : withResponse()
  const evaluate = parsed(environment, expression)
  return { evaluate, macroCount: requireBounded(evaluate.ast) }
}

/** Whether an expression that `compileWhen` accepts uses the answer: without `response` it is not valid. */
export function readsResponse(expression: string): boolean {
  try {
    compileWhen(expression, ['pre_request'])
    return false
  } catch (error) {
    if (error instanceof Failure) return true
    throw error
  }
}

function parsed(environment: Environment, expression: string) {
  try {
    return environment.parse(expression)
  } catch (error) {
    throw refused(reasonOf(error), placeOf(error), error)
  }
}

const refused = (reason: string, position: number, cause?: unknown): Failure =>
  new Failure('invalid_parameter', {
    param: 'when',
    message: `The condition ${reason} (at character ${position + 1})`,
    cause,
  })

/** The library's message without its excerpt of the expression. */
const reasonOf = (error: unknown): string =>
  `is not valid: ${error instanceof Error ? (error.message.split('\n')[0] ?? '') : 'unknown'}`

/**
 * Where the reader looks for what is wrong: at the operator between two values, at the name of a function that a value
 * does not have; else where the library's range begins.
 */
function placeOf(error: unknown): number {
  if (!(error instanceof Error)) return 0
  const node: unknown = 'node' in error ? error.node : null
  if (isNode(node) && Array.isArray(node.args)) {
    const [first, second] = node.args
    const before = node.op === 'rcall' ? second : isNode(second) && node.op !== '[]' ? first : null
    if (isNode(before)) return before.end + (/^[\s).]*/.exec(node.input.slice(before.end))?.[0].length ?? 0)
  }
  return 'range' in error && isRange(error.range) ? error.range.start : 0
}

const isRange = (value: unknown): value is { start: number } =>
  typeof value === 'object' && value !== null && 'start' in value && typeof value.start === 'number'

/** The most list elements that the macros of a condition may visit in all: some milliseconds of work. */
const mostElements = 10_000
const longLists: Readonly<Record<string, (context: PolicyContext) => number>> = {
  messages: ({ request }) => request.messages.length,
  tools: ({ request }) => request.tools.length,
  tool_calls: ({ response }) => response?.tool_calls.length ?? 0,
  arguments: ({ request }) => valuesIn(request.tool.arguments, 0),
}

/** How many values are in a value, counted no further than a macro may visit. */
function valuesIn(value: unknown, counted: number): number {
  let count = counted + 1
  if (typeof value !== 'object' || value === null) return count
  for (const inner of Object.values(value)) {
    if (count > mostElements) break
    count = valuesIn(inner, count)
  }
  return count
}

const macros: ReadonlySet<unknown> = new Set(['all', 'exists', 'exists_one', 'map', 'filter'])
/** The fields that can be as long as the request or the answer. */
const long: Readonly<Record<string, ReadonlySet<unknown>>> = {
  request: new Set(['text', 'messages', 'tools', 'tool']),
  response: new Set(['text', 'tool_calls']),
}

interface Node {
  op: string
  args: unknown
  start: number
  end: number
  /** The whole expression. */
  input: string
}

const isNode = (value: unknown): value is Node =>
  typeof value === 'object' && value !== null && 'op' in value && 'args' in value && 'input' in value

/**
 * Throws for an expression whose cost is not linear in the request; replaces `matches` with the linear one. Returns the
 * number of macros.
 */
function requireBounded(root: ASTNode): number {
  let macroCount = 0
  const visit = (value: unknown, inMacro: boolean): void => {
    if (Array.isArray(value)) for (const each of value) visit(each, inMacro)
    if (!isNode(value)) return
    if (value.op === 'id' && value.args === 'cel') throw refused('names cel, which is not supported', value.start)
    if (inMacro && isLong(value)) throw refused('names a long text or list inside a macro', value.start)
    if (isShort(value)) return
    if (value.op === 'call' && Array.isArray(value.args)) useLinearSize(value.args, value.args[1])
    if (value.op === 'rcall' && Array.isArray(value.args)) visitCall(value, value.args, inMacro)
    else visit(value.args, inMacro)
  }
  const visitCall = (node: Node, args: unknown[], inMacro: boolean): void => {
    const [name, receiver, given] = args
    if (name === 'matches') {
      requireLiteralPattern(node, given)
      args[0] = linearMatches
    }
    useLinearSize(args, [receiver])
    const isMacro = macros.has(name)
    if (isMacro) macroCount++
    if (isMacro && inMacro) throw refused('has a macro inside a macro', node.start)
    visit(receiver, inMacro)
    visit(given, inMacro || isMacro)
  }
  visit(root, false)
  return macroCount
}

/** Counts the size of a text field without a list of its characters. */
function useLinearSize(args: unknown[], measured: unknown): void {
  const [text] = Array.isArray(measured) ? measured : []
  if (args[0] === 'size' && isNode(text) && text.op === '.' && fieldOf(text) === 'text') args[0] = linearSize
}

/** The request or the answer itself, by whatever way its long fields are then asked for, or such a field of it. */
const isLong = (node: Node): boolean =>
  node.op === 'id' ? Object.hasOwn(long, String(node.args)) : (longFieldsOf(node)?.has(fieldOf(node)) ?? false)

/** Another field of the request or the answer, by its name. */
const isShort = (node: Node): boolean => longFieldsOf(node)?.has(fieldOf(node)) === false

const fieldOf = ({ args }: Node): unknown => (Array.isArray(args) ? args[1] : null)

/** The long fields of the object before a `.`; undefined if it is neither the request nor the answer. */
function longFieldsOf({ op, args }: Node): ReadonlySet<unknown> | undefined {
  const [receiver] = op === '.' && Array.isArray(args) ? args : []
  return isNode(receiver) && receiver.op === 'id' && Object.hasOwn(long, String(receiver.args))
    ? long[String(receiver.args)]
    : undefined
}

function requireLiteralPattern(node: Node, given: unknown): void {
  const [pattern] = Array.isArray(given) ? given : []
  if (!isNode(pattern) || pattern.op !== 'value' || typeof pattern.args !== 'string') {
    throw refused('has matches() with a pattern that is not a literal', node.start)
  }
  try {
    compiledPattern(pattern.args)
  } catch (error) {
    throw refused(reasonOf(error), pattern.start, error)
  }
}

/** Throws `invalid_parameter` as a pattern filter does for the same pattern. */
export function compiledPattern(pattern: string): TextMatcher {
  const known = patterns.get(pattern)
  if (known !== undefined) return known
  const options = { streaming: false, paramOf: () => 'when', stepsKept }
  const compiled = matcherOf(patternDetector([{ label: 'MATCH', pattern }], options))
  patterns.set(pattern, compiled)
  return compiled
}
