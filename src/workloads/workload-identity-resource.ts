/** Workload identities as records: whose JWTs are accepted, under which conditions, and as which token they act. */
import { z } from 'zod'
import { idParams, refersTo, resource } from '../api/resource.ts'
import { noSecret } from '../identity/free-text.ts'
import { longestCondition } from '../inspection/condition.ts'
import { recordName } from '../providers/record-name.ts'

const dayInSeconds = 86_400
const claimName = z.string().regex(/^[A-Za-z0-9_./:-]{1,100}$/, 'Write 1 to 100 letters, digits and _ . / : -')

const fields = {
  name: recordName.describe('What it is called'),
  issuer: z.url().max(500).describe('The `iss` of its JWTs, exactly: https://token.actions.githubusercontent.com'),
  audience: z
    .string()
    .min(1)
    .max(500)
    .refine(...noSecret)
    .describe('What `aud` of its JWTs must name'),
  jwks_url: z
    .url()
    .max(500)
    .describe("Where the issuer's keys are read; if left out: where its discovery document says"),
  keys: z
    .record(z.string(), z.unknown())
    .describe("The issuer's keys as a JWK Set, where the control plane cannot read them; they are never read then"),
  condition: z
    .string()
    .min(1)
    .max(longestCondition)
    .describe('CEL over `claims`; if left out: every subject is accepted'),
  attribution: z
    .record(z.string().regex(/^[a-z][a-z0-9_]{0,63}$/, 'Write 1 to 64 small letters, digits and _'), claimName)
    .refine((map) => Object.keys(map).length <= 10, 'Name at most 10 claims')
    .describe('Names in the metadata of events, each with the claim that its value comes from'),
  token_id: z.uuid().describe('The token that its callers act as: its limits, bindings and policies hold'),
  longest_seconds: z
    .number()
    .int()
    .min(60)
    .max(31 * dayInSeconds)
    .describe('The longest time from `iat` to `exp` of a JWT'),
  enabled: z.boolean().describe('Whether its JWTs are accepted'),
}

const tokenField = fields.token_id.meta(refersTo('/v1/tokens'))

export const createWorkloadIdentityBody = z.strictObject({
  name: fields.name,
  issuer: fields.issuer,
  audience: fields.audience,
  jwks_url: fields.jwks_url.optional(),
  keys: fields.keys.optional(),
  condition: fields.condition.optional(),
  attribution: fields.attribution.default({}),
  token_id: tokenField,
  longest_seconds: fields.longest_seconds.default(dayInSeconds),
  enabled: fields.enabled.default(true),
})
export type CreateWorkloadIdentity = z.infer<typeof createWorkloadIdentityBody>

export const updateWorkloadIdentityBody = z.strictObject({
  name: fields.name.optional(),
  audience: fields.audience.optional(),
  jwks_url: fields.jwks_url.nullable().optional(),
  keys: fields.keys.nullable().optional(),
  condition: fields.condition.nullable().optional(),
  attribution: fields.attribution.optional(),
  token_id: tokenField.optional(),
  longest_seconds: fields.longest_seconds.optional(),
  enabled: fields.enabled.optional(),
})
export type UpdateWorkloadIdentity = z.infer<typeof updateWorkloadIdentityBody>

export const revocationSchema = z.object({
  kind: z.enum(['subject', 'jwt_id']),
  value: z.string(),
  until: z.iso.datetime().nullable().describe('Null for a subject, which stays revoked until it is allowed again'),
})

export const workloadIdentitySchema = z.object({
  id: z.string(),
  name: z.string(),
  issuer: z.string(),
  audience: z.string(),
  jwks_url: z.string().nullable(),
  keys: z.array(z.object({ kid: z.string().nullable(), kty: z.string(), alg: z.string().nullable() })),
  keys_source: z.enum(['discovery', 'jwks_url', 'given']),
  keys_changed_at: z.string(),
  condition: z.string().nullable(),
  attribution: z.record(z.string(), z.string()),
  token_id: z.string(),
  longest_seconds: z.number().int(),
  revoked: z.array(revocationSchema),
  enabled: z.boolean(),
  version: z.number().int(),
  created_at: z.string(),
})
export type WorkloadIdentityReply = z.infer<typeof workloadIdentitySchema>

export const workloadIdentityResource = resource({
  name: 'workload-identity',
  one: 'workload identity',
  plural: 'workload_identities',
  path: '/v1/workload-identities',
  tag: 'Workload identities',
  access: { read: 'tokens:read', write: 'tokens:write' },
  params: idParams,
  about: 'Accept the JWTs of another issuer, such as Kubernetes or a CI system, instead of API tokens',
  summaries: {
    list: 'List workload identities, in the order they were made',
    get: 'Show one workload identity',
    create: 'Make a workload identity',
    update: 'Change a workload identity',
    delete: 'Delete a workload identity; its callers are refused',
  },
  notes: { create: "reads the issuer's keys unless they are given", update: 'null takes a field away' },
  record: workloadIdentitySchema,
  create: createWorkloadIdentityBody,
  update: updateWorkloadIdentityBody,
  columns: ['id', 'name', 'issuer', 'audience', 'token_id', 'enabled'],
  flags: {
    keys: { json: '{"keys": [{"kty": "RSA", "n": "…", "e": "AQAB"}]}' },
    attribution: { json: '{"repository": "repository"}' },
    longest_seconds: { hint: 'N' },
  },
})
