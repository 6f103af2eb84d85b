/** Says which parts of a condition in CEL held for a request, and with which values: for a person who tries a policy. */
import type { ASTNode } from '@marcbachmann/cel-js'
import { Failure } from '../../failure.ts'
import type { PolicyStage } from '../../languages/families.ts'
import { compiledPattern, compileWhen, linearMatches, parseWhen } from './condition.ts'
import type { PolicyContext } from './context.ts'

/** A part between `&&` and `||` that held. */
export interface HeldPart {
  /** As it is written: `request.model == "m"`. */
  part: string
  /** What it is about, by its name in the condition: `request.model`. */
  values: { name: string; value: unknown }[]
  /** Where a text has what was looked for; null for any other part. */
  found: { text: string; start: number; end: number } | null
}

/** Null where something that it asks for is not known. */
type Explained = (context: PolicyContext) => HeldPart | null

/** Compiles a condition that `compileWhen` accepts; what it gives may be asked for many requests. */
export function compileExplanation(
  when: string,
  stages: readonly PolicyStage[],
): (context: PolicyContext) => HeldPart[] {
  const textOf = textsOf(when)
  const parts = partsOf(parseWhen(when, stages).evaluate.ast).map((node) => explain(node, textOf, stages))
  return (context) => parts.map((part) => part(context)).filter((part) => part !== null)
}

const partsOf = (node: ASTNode): ASTNode[] => {
  if (node.op !== '&&' && node.op !== '||') return [node]
  return node.args.flatMap(partsOf)
}

function explain(node: ASTNode, textOf: TextOf, stages: readonly PolicyStage[]): Explained {
  const part = textOf(node)
  const condition = compiled(() => compileWhen(part, stages))
  const named = [...new Set(pathsIn(node).map(textOf))]
  const paths = named.map((name) => ({ name, read: compiled(() => parseWhen(name, stages).evaluate) }))
  return (context) => {
    try {
      if (condition?.(context) !== true) return null
      const values = paths.flatMap(({ name, read }) =>
        read === null ? [] : [{ name, value: read(context) as unknown }],
      )
      return { part, values, found: placeFound(node, textOf, values) }
    } catch {
      // The condition held without this part, which asks for what is not known.
      return null
    }
  }
}

/** Null where the text is no condition by itself: a part whose type is known only when it is evaluated. */
function compiled<Compiled>(compile: () => Compiled): Compiled | null {
  try {
    return compile()
  } catch (error) {
    if (error instanceof Failure) return null
    throw error
  }
}

type TextOf = (node: ASTNode) => string

/** Gives the text of each node. The library's range of a node lacks parentheses at its ends: `!(a || b` of `!(a || b)`. */
function textsOf(when: string): TextOf {
  const pairs = parenthesesIn(when)
  return ({ start, end }) => {
    const cut = pairs.filter(({ open, close }) => open < end && close >= start && open < start !== close >= end)
    const begins = cut.map(({ open }) => open)
    const ends = cut.map(({ close }) => close + 1)
    return when.slice(Math.min(start, ...begins), Math.max(end, ...ends))
  }
}

/** A string, a comment or a parenthesis. In a string of this library, a backslash escapes the next character, raw or not. */
const stringOrParenthesis = /("""|'''|"|')(?:\\[\s\S]|(?!\1)[^\\])*\1|\/\/[^\n]*|[()]/g

function parenthesesIn(when: string): { open: number; close: number }[] {
  const opened: number[] = []
  const pairs: { open: number; close: number }[] = []
  for (const { 0: token, index } of when.matchAll(stringOrParenthesis)) {
    if (token === '(') opened.push(index)
    const open = token === ')' ? opened.pop() : undefined
    if (open !== undefined) pairs.push({ open, close: index })
  }
  return pairs
}

/** The members of `request`, `token` and the like that a part names, each at its whole length. */
function pathsIn(node: ASTNode): ASTNode[] {
  if (isPath(node)) return node.op === 'id' && node.args !== 'now' ? [] : [node]
  if (node.op === 'rcall') {
    const [name, receiver, given] = node.args
    // The arguments of a macro name its variable, which has no value outside it.
    return [receiver, ...(macros.has(name) ? [] : given)].flatMap(pathsIn)
  }
  if (node.op === 'call') return node.args[1].flatMap(pathsIn)
  return Array.isArray(node.args) ? node.args.flatMap((one: unknown) => (isNode(one) ? pathsIn(one) : [])) : []
}

const macros: ReadonlySet<string> = new Set(['all', 'exists', 'exists_one', 'map', 'filter'])

function isPath(node: ASTNode): boolean {
  if (node.op === 'id') return true
  if (node.op === '.') return isPath(node.args[0])
  return node.op === '[]' && isPath(node.args[0]) && node.args[1].op === 'value'
}

const isNode = (value: unknown): value is ASTNode => typeof value === 'object' && value !== null && 'op' in value

/** Where a text has what `contains`, `startsWith`, `endsWith` or `matches` looked for. */
function placeFound(node: ASTNode, textOf: TextOf, values: HeldPart['values']): HeldPart['found'] {
  if (node.op !== 'rcall') return null
  const [name, receiver, [given]] = node.args
  const text = values.find((one) => one.name === textOf(receiver))?.value
  if (typeof text !== 'string' || given?.op !== 'value' || typeof given.args !== 'string') return null
  const wanted = given.args
  if (name === linearMatches) {
    const [match] = compiledPattern(wanted).matches(text)
    return match === undefined ? null : { text, start: match.start, end: match.end }
  }
  const start = name === 'endsWith' ? text.length - wanted.length : text.indexOf(wanted)
  return textFunctions.has(name) && start >= 0 ? { text, start, end: start + wanted.length } : null
}

const textFunctions: ReadonlySet<string> = new Set(['contains', 'startsWith', 'endsWith'])
