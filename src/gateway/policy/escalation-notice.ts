/** What the control plane needs to queue an escalation. */
export interface EscalationNotice {
  /** The id that the caller was given. An identical retry gets another id of the same escalation. */
  readonly id: string
  readonly policyId: string
  readonly policyVersion: number
  /** The digest of the request by `digestOf` (`request-digest.ts`). */
  readonly digest: string
}
