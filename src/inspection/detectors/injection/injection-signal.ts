/** One sign of an attempt to take over a model. */
export interface InjectionSignal {
  readonly name: string
  /** What it adds to the score, once for a text. */
  readonly weight: number
  /** Case does not matter. */
  readonly patterns: readonly string[]
}
