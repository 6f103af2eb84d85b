/** Reads the details of an event, which may hold anything. */
import type { Event } from '../../../api/routes.ts'
import { isObject } from '../../../json-object.ts'

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

/** The limit that refused a request. */
export interface RefusedLimit {
  kind: string
  id: string
  name: string | null
  /** Of a budget: whose spend it bounds. `id` of a tool is that of its server with the name after a slash. */
  scope: { kind: string; id: string | null } | null
  unit: string
  /** Null where the gateway did not know it. */
  limit: number | null
  left: number | null
  used: number | null
  resets_at: string | null
}

export function refusedLimit(event: Event): RefusedLimit | null {
  const found = event.details?.limit
  if (!isObject(found) || typeof found.kind !== 'string') return null
  const { scope, name, limit, left, resets_at: resets } = found
  const [most, rest] = [numberOrNull(limit), numberOrNull(left)]
  return {
    ...{ kind: found.kind, id: String(found.id), unit: String(found.unit), name: textOrNull(name) },
    scope: isObject(scope) ? { kind: String(scope.kind), id: textOrNull(scope.id) } : null,
    ...{ limit: most, left: rest, used: most === null || rest === null ? null : Math.max(0, most - rest) },
    resets_at: textOrNull(resets),
  }
}

const textOrNull = (value: unknown): string | null => (typeof value === 'string' ? value : null)
const numberOrNull = (value: unknown): number | null => (typeof value === 'number' ? value : null)

const isResult = (value: unknown): value is PolicyResult =>
  typeof value === 'object' &&
  value !== null &&
  'policy_id' in value &&
  typeof value.policy_id === 'string' &&
  'verdict' in value &&
  typeof value.verdict === 'string'
