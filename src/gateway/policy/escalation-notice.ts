/** What the control plane needs to put a request before a person. */
export interface EscalationNotice {
  /** What the caller was told; an identical retry is told another, which names the same record. */
  readonly id: string
  readonly policyId: string
  readonly policyVersion: number
  /** Of the request: `digestOf`. */
  readonly digest: string
}
