/** A token by which a session is used. */
export interface SessionToken {
  readonly id: string
  readonly hash: string
  /** The credential itself where it can be a person's own, for `personal/`; absent for all others. */
  readonly secret?: string
}
