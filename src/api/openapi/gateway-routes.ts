/** The routes of the gateway as `/v1/openapi.json` shows them. Their schemas describe and do not validate. */
import type { z } from 'zod'
import type { Permission } from '../../identity/permissions.ts'

export interface GatewayRouteDescription {
  method: 'GET' | 'POST'
  path: string
  family: string
  summary: string
  permission: Permission
  /** The policy stages this family supports (policies/README.md). */
  policyStages: readonly string[]
  request?: z.ZodType
  /** The content type of the request where it is not JSON. */
  requestType?: 'multipart/form-data'
  /** Left out where it never answers in JSON. */
  reply?: z.ZodType
  /** Content types beside JSON in which it answers, such as `text/event-stream`. */
  alsoAnswers?: readonly string[]
  /** The token may be sent as `x-api-key` too. */
  takesApiKey?: true
}
