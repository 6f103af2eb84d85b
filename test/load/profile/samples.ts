/** Where a thread was when a profiler looked, whichever profiler that was. */

export type FrameKind = 'kernel' | 'native' | 'fetch' | 'javascript'

export interface Frame {
  kind: FrameKind
  name: string
}

/** Many equal looks at once. */
export interface Sample {
  thread: string
  /** The outermost first. */
  frames: readonly Frame[]
  /** How many looks, or how much time: only shares of the whole are told by it. */
  weight: number
}
