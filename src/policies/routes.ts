/** `/v1/policies` (policies/README.md). */
import { type AnyElysia, Elysia } from 'elysia'
import { z } from 'zod'
import { conventions } from '../api/conventions.ts'
import { readCursor, writeCursor } from '../api/cursor.ts'
import { requireVersion } from '../api/entity-tag.ts'
import { pageQuery } from '../api/page.ts'
import { idParams } from '../api/resource.ts'
import { activityRoute } from './activity/activity-route.ts'
import { createPolicy, deletePolicy, orderPolicies, type PolicyDependencies, updatePolicy } from './change-policy.ts'
import { createPolicyBody, updatePolicyBody } from './policy-body.ts'
import { policyRecord, policyRecordSchema, readPolicies, readPolicyPage, requirePolicy } from './policy-record.ts'
import { type TrialDependencies, trialRoutes } from './trials/trial-routes.ts'

type PolicyRouteDependencies = PolicyDependencies & TrialDependencies

export const policyRoutes = (deps: PolicyRouteDependencies): AnyElysia[] => [
  chainRoutes(deps),
  trialRoutes(deps),
  activityRoute(deps),
]

const chainRoutes = (deps: PolicyDependencies) =>
  new Elysia({ name: 'policies' })
    .use(conventions)
    .post(
      '/v1/policies',
      async ({ principal, requestId, body, status }) =>
        status(201, policyRecord(await createPolicy(deps, { principal, requestId }, body))),
      {
        access: 'policies:write',
        body: createPolicyBody,
        versioned: true,
        response: { 201: policyRecordSchema },
        detail: { tags: [tag], summary: 'Creates a policy; gateways apply it within moments' },
      },
    )
    .get(
      '/v1/policies',
      async ({ query: { limit, cursor } }) => {
        const after = cursor === undefined ? null : readCursor(cursor, listed)
        const found = await readPolicyPage(deps, { after, limit: limit + 1 })
        const page = found.slice(0, limit)
        const last = page.at(-1)
        const next_cursor = found.length > limit && last !== undefined ? writeCursor(last.stored.id, listed) : null
        return { policies: page.map(policyRecord), next_cursor }
      },
      {
        access: 'policies:read',
        query: z.strictObject(pageQuery),
        response: z.object({ policies: z.array(policyRecordSchema), next_cursor: z.string().nullable() }),
        detail: { tags: [tag], summary: 'Lists policies in the order of the chain' },
      },
    )
    .put(
      '/v1/policies/order',
      async ({ principal, requestId, body }) => {
        await orderPolicies(deps, { principal, requestId }, body.policy_ids)
        return { policy_ids: (await readPolicies(deps)).map(({ id }) => id) }
      },
      {
        access: 'policies:write',
        body: z.strictObject({ policy_ids: z.array(z.uuid()).min(1).max(10_000) }),
        response: z.object({ policy_ids: z.array(z.uuid()) }),
        detail: { tags: [tag], summary: 'Orders all policies; the body names each exactly once' },
      },
    )
    .get('/v1/policies/:id', async ({ params: { id } }) => policyRecord(await requirePolicy(deps, id)), {
      access: 'policies:read',
      params: idParams,
      versioned: true,
      response: policyRecordSchema,
      detail: { tags: [tag], summary: 'Reads a policy' },
    })
    .patch(
      '/v1/policies/:id',
      async ({ principal, requestId, params: { id }, body, request }) => {
        const before = await requirePolicy(deps, id)
        requireVersion(request.headers, before.stored.version)
        return policyRecord(await updatePolicy(deps, { principal, requestId }, before, body))
      },
      {
        access: 'policies:write',
        params: idParams,
        body: updatePolicyBody,
        versioned: true,
        ifMatch: true,
        response: policyRecordSchema,
        detail: {
          tags: [tag],
          summary: 'Changes a policy; fields that are left out stay, `config` and `targets` are replaced whole',
        },
      },
    )
    .delete(
      '/v1/policies/:id',
      async ({ principal, requestId, params: { id }, request }) => {
        const before = await requirePolicy(deps, id)
        requireVersion(request.headers, before.stored.version)
        await deletePolicy(deps, { principal, requestId }, before)
        return policyRecord(before)
      },
      {
        access: 'policies:write',
        params: idParams,
        ifMatch: true,
        response: policyRecordSchema,
        detail: { tags: [tag], summary: 'Deletes a policy that no usable token names; returns its last record' },
      },
    )

const tag = 'Policies'
const listed = { list: 'policies' }
