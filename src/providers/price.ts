/** What a model costs, in nano-dollars a token: integers throughout, since money is never a float in arithmetic. */

/** One tier: it holds for requests whose input has at least this many tokens. */
export interface PriceTier {
  fromInputTokens: number
  input: number
  output: number
  cachedInput: number
  cacheWrite: number
}

export interface Price {
  /** In ascending order of `fromInputTokens`; the first is from 0. */
  tiers: readonly PriceTier[]
  /** Where it comes from: `operator`, or the embedded table and its date. */
  source: string
}
