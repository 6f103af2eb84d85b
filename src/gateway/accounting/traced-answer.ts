/** The answer attributes of a recorded span. */
export interface TracedAnswer {
  id: string | null
  model: string | null
  readonly finishReasons: string[]
  /** The number of frames that were parsed. */
  frames: number
}
