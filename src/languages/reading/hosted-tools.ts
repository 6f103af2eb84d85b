/** Tools that a provider runs itself and charges for: their maximum of uses, and which of them have a listed price. */
import type { RequestFacts } from '../dialect.ts'
import { type JsonObject, objectsOf, textOf } from './json-value.ts'

/** Web tools, whose uses the price table lists; their names may end in a date or `preview`. */
const priced = /^web_(?:search|fetch)(?:_|$)/
/** Names that a message may repeat. A caller's own text is not repeated. */
const known =
  /^(?:web_search|web_fetch|file_search|code_interpreter|code_execution|image_generation|mcp|tool_search)(?=_|$)/

const isUses = (most: unknown): most is number => typeof most === 'number' && Number.isSafeInteger(most) && most >= 0

export const hasListedPrice = ({ type }: Readonly<JsonObject>): boolean => priced.test(textOf(type) ?? '')

type ToolFacts = Pick<RequestFacts, 'unbounded' | 'unboundedWhy' | 'toolUses'>

/**
 * Adds up the `max_uses` of the provider's own tools; `isHosted` separates them from the caller's tools. A tool without
 * a maximum has no bound.
 */
export function hostedTools(tools: unknown, isHosted: (type: string) => boolean): ToolFacts {
  let uses = 0
  for (const [index, { type, max_uses: most }] of objectsOf(tools).entries()) {
    if (typeof type !== 'string' || !isHosted(type)) continue
    if (!isUses(most)) return unboundedTool(type, index, 'set its max_uses')
    uses += most
  }
  return { unbounded: null, ...(uses > 0 && { toolUses: uses }) }
}

/** Says which tool has no maximum of uses and how to give it one. */
export function unboundedTool(type: string, index: number, remedy: string): ToolFacts {
  const name = known.exec(type)?.[0] ?? `number ${index + 1}`
  const why = `The provider runs the tool ${name} as often as the model asks for it: ${remedy}, or leave the tool out`
  return { unbounded: 'tools', unboundedWhy: why }
}

/** Sets `max_uses` of each of the provider's own tools that has none, if each of those has a listed price. */
export function limitHostedTools(tools: unknown, isHosted: (type: string) => boolean, uses: number): boolean {
  const open = objectsOf(tools).filter(
    ({ type, max_uses: most }) => typeof type === 'string' && isHosted(type) && !isUses(most),
  )
  if (open.length === 0 || !open.every(hasListedPrice)) return false
  for (const tool of open) tool.max_uses = uses
  return true
}
