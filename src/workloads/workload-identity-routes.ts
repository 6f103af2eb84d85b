/** `/v1/workload-identities`: whose JWTs gateways accept instead of API tokens. */
import { and, eq, gt } from 'drizzle-orm'
import { type AnyElysia, Elysia } from 'elysia'
import { conventions } from '../api/conventions.ts'
import { requireVersion } from '../api/entity-tag.ts'
import { type PageQuery, recordPage } from '../api/page.ts'
import { idParams } from '../api/resource.ts'
import { type RecordCall, resourceRoutes } from '../api/resource-routes.ts'
import { Failure } from '../failure.ts'
import { checkedUrl } from '../providers/base-url.ts'
import { insert, newStateVersion, query, update } from '../store/query.ts'
import { workloadIdentities } from '../store/schema/state/tokens.ts'
import type { WorkloadDependencies } from './dependencies.ts'
import {
  atVersion,
  change,
  type IdentityRow,
  identityRecord,
  nameIsFree,
  requireActingToken,
  requireFreeName,
  requireIdentity,
  tokenStands,
} from './identity-change.ts'
import { type KeySet, readKeys, usableKeys } from './issuer-keys.ts'
import { revocationRoutes } from './revocation-routes.ts'
import { readStoredKeys } from './stored-identity.ts'
import { compileClaims } from './workload-identity.ts'
import {
  type CreateWorkloadIdentity,
  type UpdateWorkloadIdentity,
  workloadIdentityResource,
  workloadIdentitySchema,
} from './workload-identity-resource.ts'

export const workloadIdentityRoutes = (deps: WorkloadDependencies): AnyElysia[] => [
  resourceRoutes(workloadIdentityResource, {
    list: (query) => listIdentities(deps, query),
    get: async (id) => identityRecord(await requireIdentity(deps, id)),
    create: (body, call) => createIdentity(deps, call, body),
    update: (id, body, call) => updateIdentity(deps, call, id, body),
    remove: (id, call) => deleteIdentity(deps, call, id),
  }),
  revocationRoutes(deps),
  new Elysia({ name: 'workload-keys' })
    .use(conventions)
    .post(
      '/v1/workload-identities/:id/read-keys',
      async ({ principal, requestId, params: { id }, request: { headers } }) =>
        await readKeysAgain(deps, { principal, requestId, headers }, id),
      {
        access: 'tokens:write',
        params: idParams,
        response: workloadIdentitySchema,
        detail: { tags: ['Workload identities'], summary: "Reads the issuer's keys now, and not within five minutes" },
      },
    ),
]

async function createIdentity(deps: WorkloadDependencies, call: RecordCall, body: CreateWorkloadIdentity) {
  const id = deps.newId()
  const issuer = checkedIssuer(deps, body.issuer)
  const jwksUrl = body.jwks_url === undefined ? null : checkedJwksUrl(deps, body.jwks_url)
  requireCondition(body.condition)
  await requireFreeName(deps, body.name, id)
  const tokenHash = await requireActingToken(deps, call.principal, body.token_id)
  const keys = await keysOf(deps, { issuer, jwksUrl, given: body.keys ?? null })
  const { name, audience, token_id: tokenId, enabled } = body
  await change(deps, call, {
    type: 'workload.created',
    details: { workload_identity_id: id, name, issuer, audience, acts_as: tokenId, enabled },
    guard: and(nameIsFree(name, id), tokenStands(tokenId)),
    state: insert(workloadIdentities).values({
      id,
      name,
      issuer,
      audience,
      jwksUrl,
      keys: JSON.stringify({ ...keys, given: body.keys !== undefined }),
      keysChangedAt: deps.clock.now(),
      condition: body.condition ?? null,
      attribution: JSON.stringify(body.attribution),
      tokenId,
      tokenHash,
      longestSeconds: body.longest_seconds,
      revoked: '[]',
      enabled: enabled ? 1 : 0,
      version: newStateVersion,
    }),
  })
  return identityRecord(await requireIdentity(deps, id))
}

const listIdentities = (deps: WorkloadDependencies, page: PageQuery) =>
  recordPage(page, {
    filters: { list: 'workload_identities' },
    read: (after, count) =>
      query(deps.state)
        .select()
        .from(workloadIdentities)
        .where(and(gt(workloadIdentities.id, after), eq(workloadIdentities.deleted, 0)))
        .orderBy(workloadIdentities.id)
        .limit(count),
    show: async (rows) => rows.map(identityRecord),
  })

async function updateIdentity(deps: WorkloadDependencies, call: RecordCall, id: string, body: UpdateWorkloadIdentity) {
  const before = await requireIdentity(deps, id)
  requireVersion(call.headers, before.version)
  const name = body.name ?? before.name
  if (name !== before.name) await requireFreeName(deps, name, id)
  if (typeof body.condition === 'string') requireCondition(body.condition)
  const tokenId = body.token_id ?? before.tokenId
  // Whoever changes whom it accepts must be allowed what its callers are allowed.
  const tokenHash = await requireActingToken(deps, call.principal, tokenId)
  await change(deps, call, {
    type: 'workload.updated',
    details: { workload_identity_id: id, name, fields: Object.keys(body) },
    guard: and(atVersion(before), nameIsFree(name, id), tokenStands(tokenId)),
    state: update(workloadIdentities)
      .set({
        name,
        tokenId,
        tokenHash,
        ...(await changedKeys(deps, before, body)),
        ...(body.audience === undefined ? {} : { audience: body.audience }),
        ...(body.condition === undefined ? {} : { condition: body.condition }),
        ...(body.attribution === undefined ? {} : { attribution: JSON.stringify(body.attribution) }),
        ...(body.longest_seconds === undefined ? {} : { longestSeconds: body.longest_seconds }),
        ...(body.enabled === undefined ? {} : { enabled: body.enabled ? 1 : 0 }),
        version: newStateVersion,
      })
      .where(eq(workloadIdentities.id, id)),
  })
  return identityRecord(await requireIdentity(deps, id))
}

/** The columns of the keys, when an update says where they come from. */
async function changedKeys(deps: WorkloadDependencies, before: IdentityRow, body: UpdateWorkloadIdentity) {
  if (body.keys === undefined && body.jwks_url === undefined) return {}
  const present = readStoredKeys(before.keys)
  const jwksUrl =
    body.jwks_url === undefined ? before.jwksUrl : body.jwks_url === null ? null : checkedJwksUrl(deps, body.jwks_url)
  const stayGiven = present.given && body.keys === undefined
  const keys = stayGiven ? present : await keysOf(deps, { issuer: before.issuer, jwksUrl, given: body.keys ?? null })
  const given = stayGiven || (body.keys ?? null) !== null
  return { jwksUrl, keys: JSON.stringify({ keys: keys.keys, given }), keysChangedAt: deps.clock.now() }
}

async function deleteIdentity(deps: WorkloadDependencies, call: RecordCall, id: string) {
  const before = await requireIdentity(deps, id)
  requireVersion(call.headers, before.version)
  await change(deps, call, {
    type: 'workload.deleted',
    details: { workload_identity_id: id, name: before.name },
    guard: atVersion(before),
    state: update(workloadIdentities)
      .set({ deleted: 1, version: newStateVersion })
      .where(eq(workloadIdentities.id, id)),
  })
  return identityRecord(before)
}

async function readKeysAgain(deps: WorkloadDependencies, call: RecordCall, id: string) {
  const before = await requireIdentity(deps, id)
  const present = readStoredKeys(before.keys)
  if (present.given) {
    throw new Failure('conflict', { message: 'Its keys were given: change them with keys, or take keys away' })
  }
  const { keys } = await keysOf(deps, { issuer: before.issuer, jwksUrl: before.jwksUrl, given: null })
  if (JSON.stringify(keys) === JSON.stringify(present.keys)) return identityRecord(before)
  await change(deps, call, {
    type: 'workload.updated',
    details: { workload_identity_id: id, name: before.name, fields: ['keys'] },
    guard: atVersion(before),
    state: update(workloadIdentities)
      .set({ keys: JSON.stringify({ keys, given: false }), keysChangedAt: deps.clock.now(), version: newStateVersion })
      .where(eq(workloadIdentities.id, id)),
  })
  return identityRecord(await requireIdentity(deps, id))
}

const keysOf = async (
  deps: WorkloadDependencies,
  { issuer, jwksUrl, given }: { issuer: string; jwksUrl: string | null; given: unknown },
): Promise<KeySet> =>
  given === null
    ? await readKeys(deps.fetch, { issuer, jwksUrl }, (url) => checkedJwksUrl(deps, url))
    : usableKeys(given, 'keys')

/** The issuer as it was written: it is compared with `iss` byte by byte. */
function checkedIssuer({ plainHttp }: WorkloadDependencies, issuer: string): string {
  checkedUrl(issuer, plainHttp, { param: 'issuer', instead: 'keys' })
  return issuer
}

const checkedJwksUrl = ({ plainHttp }: WorkloadDependencies, url: string): string =>
  checkedUrl(url, plainHttp, { param: 'jwks_url', instead: 'keys' })

function requireCondition(expression: string | undefined): void {
  if (expression !== undefined) compileClaims(expression)
}
