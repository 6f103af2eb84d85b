/**
 * What a token may do and how much of it, as plain data: what a create asks for, what a clone or an update may only
 * narrow, and what its creator must hold. Null is the absence of a limit, which is the widest.
 */

import type { KeyClass } from '../identity/key-class.ts'
import type { Role } from '../identity/permissions.ts'
import type { PrincipalType, Purpose } from './governed-token.ts'

export interface TokenScope {
  gatewayId: string | null
  teamId: string | null
  userId: string | null
  /** The name of the one provider that may be used. */
  provider: string | null
  modelFilter: readonly string[] | null
  budgetId: string | null
  roles: readonly Role[]
  policyIds: readonly string[]
  accessPolicyIds: readonly string[]
  metadataTrust: 'none' | 'caller'
  /** Whether it is shown each tool of MCP servers, or two tools that find and call them. */
  mcpTools: 'listed' | 'searched'
  /** Nano-dollars. */
  maxBudget: number | null
  maxRequests: number | null
  rateLimitRpm: number | null
  rateLimitTpm: number | null
  /** Milliseconds since the epoch. */
  expiresAt: number | null
}

export interface TokenProfile {
  purpose: Purpose
  principalType: PrincipalType
  keyClass: KeyClass
}
