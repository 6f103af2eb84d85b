/** `/v1/policies` (policies/README.md). */
import { z } from 'zod'
import { readCursor, writeCursor } from '../api/cursor.ts'
import { entityTag, requireVersion } from '../api/entity-tag.ts'
import { pageQuery } from '../api/page.ts'
import { type AnyRoute, type Call, route } from '../api/route.ts'
import {
  createPolicy,
  deletePolicy,
  orderPolicies,
  type PolicyActor,
  type PolicyDependencies,
  updatePolicy,
} from './change-policy.ts'
import { createPolicyBody, updatePolicyBody } from './policy-body.ts'
import {
  type NamedPolicy,
  policyRecord,
  policyRecordSchema,
  readPolicies,
  readPolicyPage,
  requirePolicy,
} from './policy-record.ts'
import { type TrialDependencies, trialRoutes } from './trials/trial-routes.ts'

type PolicyRouteDependencies = PolicyDependencies & TrialDependencies

export const policyRoutes = (deps: PolicyRouteDependencies): AnyRoute[] => [
  create(deps),
  list(deps),
  order(deps),
  get(deps),
  update(deps),
  remove(deps),
  ...trialRoutes(deps),
]

const tag = 'Policies'
const idParams = z.object({ id: z.uuid() })
const listed = { list: 'policies' }

const actorOf = ({ principal, requestId }: Call<unknown, unknown, unknown>): PolicyActor => ({ principal, requestId })

const answerOf = (policy: NamedPolicy) => ({
  reply: policyRecord(policy),
  headers: { etag: entityTag(policy.stored.version) },
})

const create = (deps: PolicyDependencies): AnyRoute =>
  route({
    method: 'POST',
    path: '/v1/policies',
    tag,
    summary: 'Makes a policy; gateways have it within moments',
    access: 'policies:write',
    body: createPolicyBody,
    reply: policyRecordSchema,
    status: 201,
    handle: async (call) => answerOf(await createPolicy(deps, actorOf(call), call.body)),
  })

const list = (deps: PolicyDependencies): AnyRoute =>
  route({
    method: 'GET',
    path: '/v1/policies',
    tag,
    summary: 'Lists policies in the order of the chain',
    access: 'policies:read',
    query: z.object(pageQuery),
    reply: z.object({ policies: z.array(policyRecordSchema), next_cursor: z.string().nullable() }),
    async handle({ query: { limit, cursor } }) {
      const after = cursor === undefined ? null : readCursor(cursor, listed)
      const found = await readPolicyPage(deps, { after, limit: limit + 1 })
      const page = found.slice(0, limit)
      const last = page.at(-1)
      const next_cursor = found.length > limit && last !== undefined ? writeCursor(last.stored.id, listed) : null
      return { reply: { policies: page.map(policyRecord), next_cursor } }
    },
  })

const order = (deps: PolicyDependencies): AnyRoute =>
  route({
    method: 'PUT',
    path: '/v1/policies/order',
    tag,
    summary: 'Puts all policies into an order; names each exactly once',
    access: 'policies:write',
    body: z.strictObject({ policy_ids: z.array(z.uuid()).min(1).max(10_000) }),
    reply: z.object({ policy_ids: z.array(z.uuid()) }),
    async handle(call) {
      await orderPolicies(deps, actorOf(call), call.body.policy_ids)
      return { reply: { policy_ids: (await readPolicies(deps)).map(({ id }) => id) } }
    },
  })

const get = (deps: PolicyDependencies): AnyRoute =>
  route({
    method: 'GET',
    path: '/v1/policies/{id}',
    tag,
    summary: 'One policy',
    access: 'policies:read',
    params: idParams,
    reply: policyRecordSchema,
    handle: async ({ params: { id } }) => answerOf(await requirePolicy(deps, id)),
  })

const update = (deps: PolicyDependencies): AnyRoute =>
  route({
    method: 'PATCH',
    path: '/v1/policies/{id}',
    tag,
    summary: 'Changes a policy; what is left out stays, a config or targets are given whole',
    access: 'policies:write',
    params: idParams,
    body: updatePolicyBody,
    reply: policyRecordSchema,
    async handle(call) {
      const before = await requirePolicy(deps, call.params.id)
      requireVersion(call.headers, before.stored.version)
      return answerOf(await updatePolicy(deps, actorOf(call), before, call.body))
    },
  })

const remove = (deps: PolicyDependencies): AnyRoute =>
  route({
    method: 'DELETE',
    path: '/v1/policies/{id}',
    tag,
    summary: 'Deletes a policy that no token in force names; gives its last record',
    access: 'policies:write',
    params: idParams,
    reply: policyRecordSchema,
    async handle(call) {
      const before = await requirePolicy(deps, call.params.id)
      requireVersion(call.headers, before.stored.version)
      await deletePolicy(deps, actorOf(call), before)
      return { reply: policyRecord(before) }
    },
  })
