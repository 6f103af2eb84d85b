/** Answers a repeated request from the gateway's own store (gateway/cache/README.md). It decides and changes nothing. */
import { z } from 'zod'
import { policyKind } from './kind.ts'

const mostSeconds = 30 * 86_400

export const answerCache = policyKind({
  kind: 'answer-cache',
  about: 'Answers a request that was answered before without asking the provider again',
  stages: ['pre_request'],
  config: z.strictObject({
    seconds: z.number().int().min(1).max(mostSeconds).default(3600).describe('How long an answer may be given again'),
    scope: z
      .enum(['organization', 'team', 'token'])
      .default('team')
      .describe('Whose requests share answers; without a team, those of one user, else of one token'),
    price_percent: z
      .number()
      .min(0)
      .max(100)
      .default(0)
      .describe("What an answer from the cache costs, in percent of the provider's price"),
  }),
  compile: ({ seconds, scope, price_percent }) => ({
    form: 'whole',
    consider: () => null,
    cache: { seconds, scope, pricePercent: price_percent },
  }),
})
