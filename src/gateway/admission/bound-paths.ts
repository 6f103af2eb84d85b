/** Computes the maximum cost of each path of a request. */
import type { RequestFacts } from '../../languages/dialect.ts'
import { outputLimitMembers } from '../../languages/reading/output-limit.ts'
import { type Excesses, excessOf } from '../../usage/excess.ts'
import { boundedCost, boundOf, type CostBound } from '../../usage/pricing/bound.ts'
import { type Exchange, keepPaths, type PricedPath, type ResolvedModel, required } from '../exchange.ts'
import { editBody } from '../request/edit-body.ts'
import { languageOf } from '../request/translate.ts'

export interface BoundedPath {
  model: ResolvedModel
  priced: PricedPath
  /** Includes what the provider charged beyond earlier bounds. */
  bound: CostBound
  excess: number
}

/** Counts the tokens of the body's text for a model; null when they were not counted for it. */
export type TextTokens = (model: ResolvedModel) => number | null

const notCounted: TextTokens = () => null

/** The paths whose cost has a bound, the requested model first. */
export function boundPaths(exchange: Exchange, excesses: Excesses, textTokens = notCounted): BoundedPath[] {
  const { dialect, parsed } = exchange
  const body = bodyToBound(exchange)
  const request = { family: dialect.family, parsed, body }
  const bounded: BoundedPath[] = []
  // A model without a bound refuses the request; a fallback or one of several targets without one is skipped.
  keepPaths(exchange, (model) => {
    const priced = required(exchange.priced.find((each) => each.model === model) ?? null)
    const facts = factsFor(exchange, model)
    const counted = { ...request, facts, textTokens: textTokens === notCounted ? null : textTokens(model) }
    const listed = boundOf(counted, priced.terms)
    const excess = excessOf(excesses, model.provider.id, model.upstreamModel)
    bounded.push({ model, priced, bound: { ...listed, fixed: listed.fixed + excess }, excess })
  })
  return bounded
}

/** Tools that a provider runs itself are left out of a request that is translated for another one. */
function factsFor(exchange: Exchange, model: ResolvedModel): RequestFacts {
  const facts = required(exchange.facts)
  if (languageOf(exchange, model) === null) return facts
  return { ...facts, toolUses: 0, unbounded: facts.unbounded === 'tools' ? null : facts.unbounded }
}

/** The body as policies changed it, because added text is charged too. The gateway's own edits add no input. */
export function bodyToBound({ rewritten, body, members, edits }: Exchange): Uint8Array {
  return rewritten ? editBody(required(body), required(members), edits) : required(body)
}

/** The nano-dollars below which a path cannot serve the request; at least one. */
export function minCost(exchange: Exchange, { bound }: BoundedPath): number {
  const least = limitMembers(exchange).length === 0 ? bound.most : bound.least
  return Math.max(1, boundedCost(bound, least))
}

export const limitMembers = ({ dialect, parsed }: Exchange): readonly string[] =>
  parsed === null ? [] : outputLimitMembers(dialect.family, parsed)
