/** What tokens have used, for records and filters. It is passed in by the usage room, which builds on tokens itself. */

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
  /** Of the limits that the token draws on, its own and its sources', the greatest share that is settled; 0 of none. */
  shares: { budget: number; requests: number }
  /** The status that depletion gives an otherwise active token: a limit that it draws on is used up. */
  status: ExhaustedStatus | null
  /**
   * When a provider charged a request of the token more than its list price and more than ever before for the same
   * model; milliseconds since the epoch.
   */
  exceededAt: number | null
}

/** The state of a limit's account: requests, or nano-dollars. */
export interface AccountUse {
  used: number
  /** Held by running requests or by unreachable gateways: it may still be used. */
  open: number
}

export interface DepletionView {
  /** By token id. A token of which nothing is known is not in it. */
  read(tokens: readonly TokenLimits[]): Promise<ReadonlyMap<string, TokenDepletion>>
  /**
   * By account: recalls what gateways hold and no request uses, waits up to a second for answers, and returns the use
   * after that, for every requested account.
   */
  recalled(accounts: readonly string[]): Promise<ReadonlyMap<string, AccountUse>>
  /** An SQL condition on a row of the ledger's `tokens`, without arguments. */
  exhausted(status: ExhaustedStatus): string
  /** The same for tokens that draw on a limit of which at least this share, 0 … 1, but not all is used. */
  nearExhaustion(kind: 'budget' | 'requests', share: number): string
  /** The same for tokens with a request that a provider charged more for than its list price allows. */
  exceeded: string
}

/** Whether a token that is otherwise active has used up a limit. */
export const isExhausted = async (depletion: DepletionView, token: TokenLimits): Promise<boolean> =>
  ((await depletion.read([token])).get(token.id)?.status ?? null) !== null

/** For an installation without usage counts. */
export const uncounted: DepletionView = {
  read: async () => new Map(),
  recalled: async (accounts) => new Map(accounts.map((account) => [account, { used: 0, open: 0 }])),
  exhausted: () => 'false',
  nearExhaustion: () => 'false',
  exceeded: 'false',
}
