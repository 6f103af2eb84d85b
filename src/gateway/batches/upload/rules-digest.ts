/**
 * The digest of what decided about the lines of a file: the policies that read requests, and the price. A file is
 * checked when it is uploaded, and used later, also by another token of its owner. Then the same rules must hold.
 */
import type { PolicyChain } from '../../../policies/chain.ts'
import type { ModelTerms } from '../../../providers/prices/price-book.ts'

export function rulesDigest(chain: PolicyChain, { price, maxOutputTokens, contextWindow }: ModelTerms): string {
  const policies = chain.at('pre_request').map(({ id, version, enforced }) => [id, version, enforced])
  const rules = JSON.stringify([policies, price, maxOutputTokens, contextWindow])
  return new Bun.CryptoHasher('sha256').update(rules).digest('hex').slice(0, 16)
}
