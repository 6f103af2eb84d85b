/** What the span of a recorded exchange says of its answer. */
export interface TracedAnswer {
  id: string | null
  model: string | null
  readonly finishReasons: string[]
  /** How many of a stream's frames were read. */
  frames: number
}
