/** What the control plane needs to queue an escalation. */
export interface EscalationNotice {
  /** The id that the caller was given. An identical retry gets another id of the same escalation. */
  readonly id: string
  readonly policyId: string
  readonly policyVersion: number
  /** The digest of the request by `digestOf` (`request-digest.ts`). */
  readonly digest: string
  /** Whether the policy shows the reviewer the texts of request and answer and the arguments of tools. */
  readonly captures: boolean
  /** The tools that are called: by the request on the MCP surface, by the answer elsewhere. */
  readonly calls: readonly EscalatedCall[]
  /** The text of the answer that waits, without personal data and secrets; null where it is not captured. */
  readonly answer: string | null
}

export interface EscalatedCall {
  readonly tool: string
  /** JSON without personal data and secrets; null where it is not captured. */
  readonly arguments: string | null
}
