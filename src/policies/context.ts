/** The names that conditions read (contract section 7). Counts are whole numbers. */

export interface PolicyContext {
  readonly request: {
    readonly family: string
    readonly model: string
    /** All texts of the request, a line break between them. */
    readonly text: string
    readonly messages: readonly { role: string; text: string }[]
    /** Names of the tools that are offered. */
    readonly tools: readonly string[]
    readonly stream: boolean
    /** Names in lower case; never credentials or cookies. */
    readonly headers: Readonly<Record<string, string>>
    readonly session_id: string
  }
  /** Empty texts and status 0 before there is an answer. */
  readonly response: {
    readonly text: string
    /** Names of the tools that the model calls. */
    readonly tool_calls: readonly string[]
    readonly status: number
  }
  readonly token: {
    readonly id: string
    readonly purpose: string
    readonly roles: readonly string[]
    /** Empty where there is none, as are the two after it. */
    readonly team_id: string
    readonly user_id: string
    readonly gateway_id: string
    readonly metadata: Readonly<Record<string, string>>
  }
  readonly model: { readonly id: string; readonly provider: string }
  readonly now: Date
}
