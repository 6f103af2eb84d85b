/** The routes of the gateway as `/v1/openapi.json` shows them. Their schemas describe and do not validate. */
import type { z } from 'zod'
import type { Permission } from '../../identity/permissions.ts'

export interface GatewayRouteDescription {
  method: 'GET' | 'POST' | 'DELETE'
  path: string
  /** Left out where the process answers for itself. */
  family?: string
  summary: string
  /** Null where anyone may ask. */
  permission: Permission | null
  /** The policy stages this family supports (policies/README.md). */
  policyStages: readonly string[]
  /** The parameters of the query. */
  query?: z.ZodType
  request?: z.ZodType
  /** The content type of the request where it is not JSON. */
  requestType?: 'multipart/form-data'
  /** Left out where it never answers in JSON. */
  reply?: z.ZodType
  /** Statuses of success without content, each with what it means. */
  otherSuccess?: Readonly<Record<number, string>>
  /** It becomes a WebSocket, whose frames have this form in errors. */
  errorFrame?: z.ZodType
  /** Statuses of failures; those of a request to a model where they are left out. */
  failures?: readonly number[]
  /** The form of its errors where it is not the envelope. */
  errors?: 'messages' | 'google' | 'json-rpc'
  /** Content types beside JSON in which it answers, such as `text/event-stream`. */
  alsoAnswers?: readonly string[]
  /** The token may be sent in this header too. */
  takesApiKey?: 'x-api-key' | 'x-goog-api-key'
}
