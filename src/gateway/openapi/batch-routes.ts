/** The routes of files and batches in `/v1/openapi.json`, from their table. */
import { z } from 'zod'
import type { GatewayRouteDescription } from '../../api/openapi/gateway-routes.ts'
import { policyStages } from '../../languages/families.ts'
import { newBatchSchema } from '../batches/batch-call.ts'
import { listQuerySchema } from '../batches/list-objects.ts'
import { type BatchRoute, batchRoutes, listRoutes, uploadRoute } from '../batches/routes.ts'
import { describedPath } from '../stored/routes.ts'

const fileReply = z.looseObject({
  id: z.string().describe('A sealed id of the gateway: file_…'),
  object: z.literal('file'),
  bytes: z.number().int().optional(),
  purpose: z.string().optional(),
})
const deletedReply = z.looseObject({ id: z.string(), object: z.literal('file'), deleted: z.boolean() })
const fileId = z.string().nullish().describe('A sealed id of the gateway: file_…')
const batchReply = z.looseObject({
  id: z.string().describe('A sealed id of the gateway: batch_…'),
  object: z.literal('batch'),
  status: z
    .string()
    .describe('validating, in_progress, finalizing, completed, failed, expired, cancelling or cancelled'),
  input_file_id: z.string(),
  output_file_id: fileId,
  error_file_id: fileId,
})
const uploadForm = z.object({
  file: z.string().describe('One request a line: custom_id, method, url and body'),
  purpose: z.literal('batch'),
})

const failures = [400, 401, 402, 403, 404, 405, 408, 409, 413, 415, 422, 429, 499, 500, 501, 502, 503, 504]
const shared = { permission: 'gateway:invoke', failures } as const

function replyOf({ about, method }: BatchRoute): Pick<GatewayRouteDescription, 'reply' | 'alsoAnswers'> {
  if (about === 'content') return { alsoAnswers: ['application/octet-stream'] }
  if (about === 'file') return { reply: method === 'DELETE' ? deletedReply : fileReply }
  return { reply: batchReply }
}

export const batchRouteDescriptions: readonly GatewayRouteDescription[] = [
  {
    ...shared,
    ...uploadRoute,
    policyStages: ['pre_request'],
    request: uploadForm,
    requestType: 'multipart/form-data',
    reply: fileReply,
  },
  ...listRoutes.map(({ method, path, summary, kind }) => ({
    ...shared,
    ...{ method, path, summary, policyStages: [], query: listQuerySchema },
    reply: z.looseObject({
      ...{ object: z.literal('list'), data: z.array(kind === 'file' ? fileReply : batchReply), has_more: z.boolean() },
      ...{ first_id: z.string().nullable(), last_id: z.string().nullable() },
    }),
  })),
  ...batchRoutes.map((route) => ({
    ...shared,
    method: route.method,
    path: describedPath(route),
    summary: route.summary,
    policyStages: route.about === 'content' ? policyStages.slice(1) : [],
    ...(route.about === 'new batch' && { request: newBatchSchema }),
    ...replyOf(route),
  })),
]
