/** Counts the input tokens of a request that was refused for lack of money, to bound it more closely. */

import { countsMoney } from '../../usage/account-name.ts'
import { encodingOf } from '../../usage/pricing/text-tokens.ts'
import { maxCountedBytes } from '../../usage/pricing/token-counter.ts'
import { UsageRefused } from '../../usage/usage-limits.ts'
import type { Gateway } from '../context.ts'
import type { Exchange, ResolvedModel } from '../exchange.ts'
import { type BoundedPath, bodyToBound, boundPaths, minCost } from './bound-paths.ts'

const encodingFor = ({ provider, upstreamModel }: ResolvedModel) => encodingOf(provider.kind, upstreamModel)

/**
 * Resolves to the paths with smaller bounds, or to null when the bounds are not smaller. Returns null at once when
 * counting cannot help: another refusal reason, no tokenizer, a large body, or too little money for even an empty
 * input. A model whose provider has exceeded a bound before is not counted either, because a smaller bound would be
 * exceeded by more.
 */
export function countInput(
  exchange: Exchange,
  gateway: Gateway,
  paths: readonly BoundedPath[],
  refused: unknown,
): Promise<BoundedPath[] | null> | null {
  const [first] = paths
  if (!(refused instanceof UsageRefused) || refused.reason !== 'short' || !countsMoney(refused.account)) return null
  if (first === undefined || first.excess > 0) return null
  const encoding = encodingFor(first.model)
  const body = bodyToBound(exchange)
  if (encoding === null || body.length > maxCountedBytes) return null
  const bounded = (tokens: number) =>
    boundPaths(exchange, gateway.worker.view.limits.excesses, (model) =>
      encodingFor(model) === encoding ? tokens : null,
    )
  const costs = minCost(exchange, first)
  const [smallest] = bounded(0)
  if (smallest === undefined || minCost(exchange, smallest) > Math.min(costs - 1, refused.left ?? costs)) return null
  return gateway.tokenCounter.count(encoding, body).then(
    (tokens) => {
      const counted = tokens === null ? [] : bounded(tokens)
      return counted[0] !== undefined && minCost(exchange, counted[0]) < costs ? counted : null
    },
    (err: unknown) => {
      gateway.log.warn({ err }, 'The tokens of a request could not be counted, so it is refused by its bytes')
      return null
    },
  )
}
