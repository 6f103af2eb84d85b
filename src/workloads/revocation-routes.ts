/** Revokes callers of a workload identity, by subject or by JWT, and allows them again. */
import { eq } from 'drizzle-orm'
import { Elysia } from 'elysia'
import { z } from 'zod'
import { conventions } from '../api/conventions.ts'
import { idParams } from '../api/resource.ts'
import type { RecordCall } from '../api/resource-routes.ts'
import { Failure } from '../failure.ts'
import { noSecret } from '../identity/free-text.ts'
import { type Propagation, propagationSchema } from '../store/propagation.ts'
import { newStateVersion, update } from '../store/query.ts'
import { workloadIdentities } from '../store/schema/state/tokens.ts'
import type { WorkloadDependencies } from './dependencies.ts'
import { atVersion, change, type IdentityRow, identityRecord, requireIdentity } from './identity-change.ts'
import { type Revocation, readRevocations } from './stored-identity.ts'
import { workloadIdentitySchema } from './workload-identity-resource.ts'

/** The most revocations of one workload identity. Those of JWTs leave it when the JWT has ended. */
const mostRevocations = 1000

const subjectText = z
  .string()
  .min(1)
  .max(500)
  .refine(...noSecret)

const revokedWhat = z
  .strictObject({
    subject: subjectText.optional().describe('`sub` of the JWTs that are refused from now on'),
    jwt_id: subjectText.optional().describe('`jti` of the JWT that is refused from now on'),
  })
  .refine(({ subject, jwt_id }) => (subject === undefined) !== (jwt_id === undefined), 'Give subject or jwt_id')

export const revocationRoutes = (deps: WorkloadDependencies) =>
  new Elysia({ name: 'workload-revocations' })
    .use(conventions)
    .post(
      '/v1/workload-identities/:id/revocations',
      async ({ principal, requestId, params: { id }, body, request: { headers } }) => {
        const call = { principal, requestId, headers }
        const revoked: Revocation =
          body.subject === undefined
            ? { kind: 'jwt_id', value: body.jwt_id ?? '', until: null }
            : { kind: 'subject', value: body.subject, until: null }
        return await revokeCaller(deps, call, id, revoked)
      },
      {
        access: 'tokens:revoke',
        params: idParams,
        body: revokedWhat,
        response: workloadIdentitySchema.extend({ propagation: propagationSchema }),
        detail: { tags: ['Workload identities'], summary: 'Refuses the JWTs of a subject, or one JWT, from now on' },
      },
    )
    .post(
      '/v1/workload-identities/:id/revocations/remove',
      async ({ principal, requestId, params: { id }, body, request: { headers } }) => {
        const value = body.subject ?? body.jwt_id ?? ''
        const kind = body.subject === undefined ? 'jwt_id' : 'subject'
        return await allowCaller(deps, { principal, requestId, headers }, id, { kind, value })
      },
      {
        access: 'tokens:write',
        params: idParams,
        body: revokedWhat,
        response: workloadIdentitySchema,
        detail: { tags: ['Workload identities'], summary: 'Takes back the revocation of a subject or a JWT' },
      },
    )

async function revokeCaller(deps: WorkloadDependencies, call: RecordCall, id: string, revoked: Revocation) {
  const before = await requireIdentity(deps, id)
  const now = deps.clock.now()
  const until = revoked.kind === 'subject' ? null : now + 1000 * before.longestSeconds
  const others = standing(before, now).filter(({ kind, value }) => kind !== revoked.kind || value !== revoked.value)
  if (others.length >= mostRevocations) {
    const message = `It has ${mostRevocations} revocations already: narrow its condition, or delete it`
    throw new Failure('conflict', { message })
  }
  const { kind, value } = revoked
  const propagation = await changeRevocations(deps, call, before, {
    revoked: [...others, { kind, value, until }],
    details: { revoked: kind, value },
  })
  return { ...identityRecord(await requireIdentity(deps, id)), propagation }
}

async function allowCaller(
  deps: WorkloadDependencies,
  call: RecordCall,
  id: string,
  allowed: Pick<Revocation, 'kind' | 'value'>,
) {
  const before = await requireIdentity(deps, id)
  const isMeant = ({ kind, value }: Revocation) => kind === allowed.kind && value === allowed.value
  const present = standing(before, deps.clock.now())
  if (!present.some(isMeant)) throw new Failure('not_found', { message: 'There is no such revocation' })
  await changeRevocations(deps, call, before, {
    revoked: present.filter((each) => !isMeant(each)),
    details: { allowed: allowed.kind, value: allowed.value },
  })
  return identityRecord(await requireIdentity(deps, id))
}

/** Revocations whose JWTs may not have ended. */
const standing = ({ revoked }: IdentityRow, now: number): Revocation[] =>
  readRevocations(revoked).filter(({ until }) => until === null || until > now)

async function changeRevocations(
  deps: WorkloadDependencies,
  call: RecordCall,
  before: IdentityRow,
  { revoked, details }: { revoked: readonly Revocation[]; details: Record<string, unknown> },
): Promise<Propagation> {
  const { id, name } = before
  const version = await change(deps, call, {
    type: 'workload.revoked',
    details: { workload_identity_id: id, name, ...details },
    guard: atVersion(before),
    state: update(workloadIdentities)
      .set({ revoked: JSON.stringify(revoked), version: newStateVersion })
      .where(eq(workloadIdentities.id, id)),
  })
  return await deps.fleet.propagation(version)
}
