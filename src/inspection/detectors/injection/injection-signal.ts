/** One sign of an attempt to take over a model. */
export interface InjectionSignal {
  readonly name: string
  /** Its weight in the score, counted once for a text. */
  readonly weight: number
  /** Case does not matter. */
  readonly patterns: readonly string[]
}
