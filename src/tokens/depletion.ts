/**
 * What tokens have used, as the records show it and the filters ask for it. The usage ledger knows; it is handed in,
 * because it builds on tokens itself.
 */

/** The limits of a token as its record holds them; money in nano-dollars. */
export interface TokenLimits {
  id: string
  maxRequests: number | null
  maxBudget: number | null
}

export type ExhaustedStatus = 'budget_exhausted' | 'request_exhausted'

export interface TokenDepletion {
  /** Money in dollars; null where there is no such limit. */
  depletion: {
    current_spend: number
    remaining_budget: number | null
    current_requests: number
    remaining_requests: number | null
  }
  /** The status that depletion gives a token that is otherwise active. */
  status: ExhaustedStatus | null
}

export interface DepletionView {
  /** By token id. A token of which nothing is known is not in it. */
  read(tokens: readonly TokenLimits[]): Promise<ReadonlyMap<string, TokenDepletion>>
  /** An SQL condition on a row of the ledger's `tokens`, without arguments. */
  exhausted(status: ExhaustedStatus): string
  /** The same for tokens that have used at least this share, 0 … 1, of a limit that is not used up. */
  nearExhaustion(kind: 'budget' | 'requests', share: number): string
}

/** Whether a token that is otherwise active has used up a limit. */
export const isExhausted = async (depletion: DepletionView, token: TokenLimits): Promise<boolean> =>
  ((await depletion.read([token])).get(token.id)?.status ?? null) !== null

/** The view of an installation that counts nothing. */
export const uncounted: DepletionView = {
  read: async () => new Map(),
  exhausted: () => 'false',
  nearExhaustion: () => 'false',
}
