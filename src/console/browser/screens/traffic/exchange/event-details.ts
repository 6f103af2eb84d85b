/** Reads the details of an event, which may hold anything. */
import type { Event } from '../../../api/routes.ts'

export interface PolicyResult {
  policy_id: string
  kind: string
  stage: string
  mode: string
  verdict: Event['verdict']
  reason_code: string
  latency_ms: number
  targets: readonly string[]
}

/** A member of the details as text, or null. */
export function detail(event: Event, name: string): string | null {
  const value = event.details?.[name]
  return typeof value === 'string' || typeof value === 'number' ? String(value) : null
}

export const numberDetail = (event: Event, name: string): number | null => {
  const value = event.details?.[name]
  return typeof value === 'number' ? value : null
}

export function policyResults(event: Event): PolicyResult[] {
  const results = event.details?.policy_results
  return Array.isArray(results) ? results.filter(isResult) : []
}

const isResult = (value: unknown): value is PolicyResult =>
  typeof value === 'object' &&
  value !== null &&
  'policy_id' in value &&
  typeof value.policy_id === 'string' &&
  'verdict' in value &&
  typeof value.verdict === 'string'
