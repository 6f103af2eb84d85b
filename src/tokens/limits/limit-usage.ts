/** The use of limits in the answer to their change (usage/lease/README.md rule 17). */
import { z } from 'zod'
import { fromNano } from '../../lib/money.ts'
import type { TokenDependencies } from '../dependencies.ts'
import type { TokenScope } from '../scope.ts'

const accountUse = z
  .object({
    used: z.number().describe('Settled so far'),
    open: z.number().describe('Held by requests that run, or by gateways that did not answer: may be used yet'),
  })
  .nullable()

/** Money in dollars; null where there is no such limit. */
export const limitUsageSchema = z.object({ requests: accountUse, budget: accountUse })
export type LimitUsage = z.infer<typeof limitUsageSchema>

export async function usageOf(
  { depletion }: Pick<TokenDependencies, 'depletion'>,
  accountId: string,
  { maxRequests, maxBudget }: Pick<TokenScope, 'maxRequests' | 'maxBudget'>,
): Promise<LimitUsage> {
  const [requests, money] = [`token/${accountId}/requests`, `token/${accountId}/money`]
  const found = await depletion.recalled([
    ...(maxRequests === null ? [] : [requests]),
    ...(maxBudget === null ? [] : [money]),
  ])
  const spent = found.get(money)
  return {
    requests: found.get(requests) ?? null,
    budget: spent === undefined ? null : { used: fromNano(spent.used), open: fromNano(spent.open) },
  }
}
