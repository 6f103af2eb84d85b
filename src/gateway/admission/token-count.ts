/** Admits a request that counts tokens (gateway/README.md, Counting tokens). */
import { Failure } from '../../failure.ts'
import type { Exchange } from '../exchange.ts'
import { required } from '../exchange.ts'

/**
 * Only the requested model counts, because a fallback has another tokenizer. A provider that counts no tokens is refused
 * with 501: clients rely on the number, and an estimate would mislead them.
 */
export function requireTokenCount(exchange: Exchange): void {
  const requested = required(exchange.model)
  const counting = exchange.paths.find(({ id, kind }) => id === requested.id && kind.countsTokens === true)
  const model = counting ?? requested
  exchange.model = model
  exchange.paths = [model]
  if (model.kind.countsTokens !== true) throw new Failure('token_count_unsupported', { param: 'model' })
}
