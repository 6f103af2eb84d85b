/**
 * Conditions of the plain sort, which most are, as functions of ours: comparisons of fields with texts, lists and their
 * combination, and of how long a list is. They cost a tenth of what interpreting them does, and say the same; a hundred policies of which none
 * applies should not be felt. Only what cannot fail is taken: everything else is the interpreter's.
 */
import type { PolicyContext } from './context.ts'

type Read<Value> = (context: PolicyContext) => Value

interface Node {
  readonly op: string
  readonly args: unknown
}

const isNode = (value: unknown): value is Node =>
  typeof value === 'object' && value !== null && 'op' in value && 'args' in value

/** The node's parts; empty where it has none that are nodes or names. */
const partsOf = ({ args }: Node): readonly unknown[] => (Array.isArray(args) ? args : [args])

const fields: Readonly<Record<string, Read<string>>> = {
  'request.family': ({ request }) => request.family,
  'request.model': ({ request }) => request.model,
  'request.session_id': ({ request }) => request.session_id,
  'request.text': ({ request }) => request.text,
  'token.id': ({ token }) => token.id,
  'token.purpose': ({ token }) => token.purpose,
  'token.team_id': ({ token }) => token.team_id,
  'token.user_id': ({ token }) => token.user_id,
  'token.gateway_id': ({ token }) => token.gateway_id,
  'model.id': ({ model }) => model.id,
  'model.provider': ({ model }) => model.provider,
}

const lists: Readonly<Record<string, Read<readonly string[]>>> = {
  'request.tools': ({ request }) => request.tools,
  'token.roles': ({ token }) => token.roles,
}

/** Of texts the condition language counts code points, which is the interpreter's business. */
const sizes: Readonly<Record<string, Read<number>>> = {
  'request.messages': ({ request }) => request.messages.length,
  'request.tools': ({ request }) => request.tools.length,
  'token.roles': ({ token }) => token.roles.length,
}

const comparisons: Readonly<Record<string, (one: number, other: number) => boolean>> = {
  '<': (one, other) => one < other,
  '<=': (one, other) => one <= other,
  '>': (one, other) => one > other,
  '>=': (one, other) => one >= other,
  '==': (one, other) => one === other,
  '!=': (one, other) => one !== other,
}

const calls: Readonly<Record<string, (text: string, part: string) => boolean>> = {
  startsWith: (text, part) => text.startsWith(part),
  endsWith: (text, part) => text.endsWith(part),
  contains: (text, part) => text.includes(part),
}

/** The function that a type-checked expression is; null where it is not of the plain sort. */
export function plainCondition(node: unknown): Read<boolean> | null {
  if (!isNode(node)) return null
  const [one, other] = partsOf(node)
  switch (node.op) {
    case '&&':
    case '||':
      return combined(node.op, plainCondition(one), plainCondition(other))
    case '!_':
      return negated(plainCondition(one))
    case '==':
      return compared(textOf(one), textOf(other)) ?? measured(node.op, one, other)
    case '!=':
      return negated(compared(textOf(one), textOf(other))) ?? measured(node.op, one, other)
    case '<':
    case '<=':
    case '>':
    case '>=':
      return measured(node.op, one, other)
    case 'in':
      return among(textOf(one), listOf(other))
    case 'rcall':
      return called(node)
    case '.':
      return nameOf(node) === 'request.stream' ? ({ request }) => request.stream : null
    default:
      return null
  }
}

function combined(op: '&&' | '||', one: Read<boolean> | null, other: Read<boolean> | null): Read<boolean> | null {
  if (one === null || other === null) return null
  return op === '&&' ? (context) => one(context) && other(context) : (context) => one(context) || other(context)
}

const negated = (one: Read<boolean> | null): Read<boolean> | null => (one === null ? null : (context) => !one(context))

const compared = (one: Read<string> | null, other: Read<string> | null): Read<boolean> | null =>
  one === null || other === null ? null : (context) => one(context) === other(context)

function measured(op: string, one: unknown, other: unknown): Read<boolean> | null {
  const [left, right] = [numberOf(one), numberOf(other)]
  const compare = comparisons[op]
  if (left === null || right === null || compare === undefined) return null
  return (context) => compare(left(context), right(context))
}

const among = (text: Read<string> | null, list: Read<readonly string[]> | null): Read<boolean> | null =>
  text === null || list === null ? null : (context) => list(context).includes(text(context))

function called(node: Node): Read<boolean> | null {
  const [name, receiver, given] = partsOf(node)
  const call = typeof name === 'string' && Object.hasOwn(calls, name) ? calls[name] : undefined
  const text = textOf(receiver)
  const part = Array.isArray(given) && given.length === 1 ? textOf(given[0]) : null
  if (call === undefined || text === null || part === null) return null
  return (context) => call(text(context), part(context))
}

function textOf(node: unknown): Read<string> | null {
  if (!isNode(node)) return null
  const { op, args } = node
  if (op === 'value' && typeof args === 'string') return () => args
  const name = nameOf(node)
  return name !== null && Object.hasOwn(fields, name) ? (fields[name] ?? null) : null
}

/** A whole number, or how long a list is, in either spelling. */
function numberOf(node: unknown): Read<number> | null {
  if (!isNode(node)) return null
  const { op, args } = node
  if (op === 'value') {
    const number = typeof args === 'bigint' ? Number(args) : Number.NaN
    return Number.isSafeInteger(number) ? () => number : null
  }
  const [name, receiver, given] = partsOf(node)
  if (name !== 'size') return null
  const [first, ...more] = Array.isArray(receiver) ? receiver : []
  const list = op === 'call' && more.length === 0 ? first : op === 'rcall' && isEmpty(given) ? receiver : null
  const field = isNode(list) ? nameOf(list) : null
  return field !== null && Object.hasOwn(sizes, field) ? (sizes[field] ?? null) : null
}

const isEmpty = (given: unknown): boolean => Array.isArray(given) && given.length === 0

function listOf(node: unknown): Read<readonly string[]> | null {
  if (!isNode(node)) return null
  if (node.op === 'list') {
    const values = partsOf(node).map((each) => (isNode(each) && each.op === 'value' ? each.args : null))
    const texts = values.filter((value): value is string => typeof value === 'string')
    return texts.length === values.length ? () => texts : null
  }
  const name = nameOf(node)
  return name !== null && Object.hasOwn(lists, name) ? (lists[name] ?? null) : null
}

/** `request.model`, where a field of a name is asked for. */
function nameOf(node: Node): string | null {
  const [owner, field] = partsOf(node)
  return node.op === '.' && isNode(owner) && owner.op === 'id' && typeof field === 'string'
    ? `${owner.args}.${field}`
    : null
}
