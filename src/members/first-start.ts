/**
 * What a new installation begins with (members/README.md): the organization, team `default`, an owner in it, a gateway
 * with its runtime token, an administrator token. Safe against crashes and against several processes starting at once:
 *
 *   1. One ledger transaction makes the organization, whose table holds one row at most, and with it everything that is
 *      drawn at random: the secrets of both tokens and the prompt-hash key, sealed. It happens whole or not at all.
 *   2. The gateway with its runtime token, then the administrator token, each one change guarded by the hash of its
 *      secret. A start that finds one of them missing makes it, with the secret of step 1.
 *   3. A runtime token that has been revoked, rotated or has expired is replaced: the start that first seals another secret
 *      in its place decides which, and all hand over that one.
 *   4. Once the administrator token has been handed over, `shown` removes its sealed secret; until then each start
 *      hands over the same one.
 *
 * Secrets in the ledger: `runtime-token`, `admin-token` (until it is shown), both as text; `prompt-hash-key`, as JSON
 * `{"id","key"}` with 32 bytes in base64.
 */

import { and, desc, eq, sql } from 'drizzle-orm'
import { controlPlaneEvent } from '../events/control-plane-event.ts'
import type { Recorder } from '../events/recorder.ts'
import { Failure } from '../failure.ts'
import { anonymous, type Principal } from '../identity/principal.ts'
import { hashSecret, makeSecret } from '../identity/secret.ts'
import type { Clock } from '../lib/clock.ts'
import type { NewId } from '../lib/ids.ts'
import type { MasterKey } from '../store/keys/master-key.ts'
import { forgetSecret, keepSecret, openSecret } from '../store/keys/secrets.ts'
import type { Database } from '../store/open.ts'
import { condition, hasRow, insert, newStateVersion, query, statement } from '../store/query.ts'
import { keepName, nameDigest } from '../store/schema/gateway-name.ts'
import { memberships, organizations, teams, users } from '../store/schema/ledger/people.ts'
import { tokens as ledgerTokens } from '../store/schema/ledger/tokens.ts'
import { gateways } from '../store/schema/state/catalog.ts'
import { tokens } from '../store/schema/state/tokens.ts'
import type { Statement } from '../store/statement.ts'
import { type Draft, mint, scopeDetails, tokenEvent } from '../tokens/creation/minting.ts'
import { tokenStatus } from '../tokens/governed-token.ts'
import { organizationId } from '../tokens/organization.ts'
import { sealedRuntimeToken } from '../tokens/runtime/sealed-runtime-token.ts'
import type { TokenScope } from '../tokens/scope.ts'

export interface FirstStartOptions {
  state: Database
  ledger: Database
  recorder: Recorder
  masterKey: MasterKey
  clock: Clock
  newId: NewId
  randomBytes(size: number): Uint8Array
}

export interface Installation {
  organizationId: string
  /** The runtime token of a gateway beside this control plane. */
  runtimeToken: string
  /** The administrator token until it has been shown once, then null. */
  adminToken: string | null
  /** Call when the administrator token has reached a person. */
  shown(): Promise<void>
}

/** The actor of automatic changes: named in events as `actor`. */
export const installer: Principal = { ...anonymous, name: 'system:start' }
const requestId = 'start'
const gatewayName = 'local'

/** What belongs to a token and is made with it. */
interface Beside {
  state: readonly Statement[]
  ledger: readonly Statement[]
}
const nothing: Beside = { state: [], ledger: [] }

const names = { admin: 'admin-token', promptHash: 'prompt-hash-key' } as const

/** Makes what is missing of a new installation, and returns what this process needs of it. */
export async function firstStart(options: FirstStartOptions): Promise<Installation> {
  const { ledger, masterKey } = options
  if ((await organizationId(ledger)) === null) await makeOrganization(options)
  const made = await organizationId(ledger)
  const runtimeToken = await runtimeTokenInForce(options)
  if (made === null || runtimeToken === null) {
    throw new Failure('conflict', {
      message: 'The ledger is not one that this product made: its first records are missing',
    })
  }
  const adminToken = await openSecret(ledger, masterKey, names.admin)
  if (adminToken !== null) await makeAdminToken(options, adminToken)
  return {
    organizationId: made,
    runtimeToken,
    adminToken,
    shown: () => ledger.write([forgetSecret(names.admin)]),
  }
}

async function makeOrganization(options: FirstStartOptions): Promise<void> {
  const { recorder, ledger, masterKey, clock, newId, randomBytes } = options
  const [id, teamId, userId] = [newId(), newId(), newId()]
  const createdAt = clock.now()
  const promptHashKey = JSON.stringify({ id: newId(), key: Buffer.from(randomBytes(32)).toString('base64') })
  const event = controlPlaneEvent({
    type: 'member.created',
    principal: installer,
    requestId,
    teamId,
    details: { organization_id: id, team_id: teamId, team: 'default', user_id: userId, role: 'owner' },
    configVersion: 0,
    clock,
    newId,
  })
  try {
    await recorder.change({
      event,
      state: [],
      ledger: [
        statement(insert(organizations).values({ id, name: 'default', createdAt })),
        statement(insert(teams).values({ id: teamId, name: 'default', createdAt })),
        statement(
          insert(users).values({
            id: userId,
            email: 'owner@localhost',
            name: 'Owner',
            role: 'owner',
            status: 'active',
            createdAt,
          }),
        ),
        statement(insert(memberships).values({ teamId, userId, createdAt })),
        keepSecret(masterKey, sealedRuntimeToken.name, makeSecret('token', randomBytes), createdAt),
        keepSecret(masterKey, names.admin, makeSecret('token', randomBytes), createdAt),
        keepSecret(masterKey, names.promptHash, promptHashKey, createdAt),
      ],
    })
  } catch (error) {
    // Another process that started at the same time was first; then its organization is there and ours is not.
    if ((await organizationId(ledger)) === null) throw error
  }
}

const unbound: TokenScope = {
  gatewayId: null,
  teamId: null,
  userId: null,
  provider: null,
  modelFilter: null,
  budgetId: null,
  roles: [],
  policyIds: [],
  accessPolicyIds: [],
  metadataTrust: 'none',
  mcpTools: 'listed',
  maxBudget: null,
  maxRequests: null,
  rateLimitRpm: null,
  rateLimitTpm: null,
  expiresAt: null,
}

/** Bound to no team and no user: it administers the whole installation and reads every team's events. */
async function makeAdminToken(options: FirstStartOptions, secret: string): Promise<void> {
  const teamId = await defaultTeam(options.ledger)
  await makeOnce(options, {
    name: 'administrator',
    metadata: {},
    profile: { purpose: 'general', principalType: 'api_token', keyClass: 'durable' },
    scope: { ...unbound, roles: ['owner'] },
    ownership: { ownerKind: 'team', ownerId: teamId, eventTeamId: teamId },
    createdBy: installer.name,
    secret,
  })
}

/** The encrypted runtime token, made if missing and replaced if no longer valid; null if none is kept. */
async function runtimeTokenInForce(options: FirstStartOptions): Promise<string | null> {
  const { state, ledger, clock, randomBytes } = options
  const sealed = await sealedRuntimeToken.read(options)
  if (sealed === null) return null
  const token = await query(state)
    .select()
    .from(tokens)
    .where(eq(tokens.hash, hashSecret(sealed.secret)))
    .get()
  if (token === undefined) await makeRuntimeToken(options, sealed.secret)
  // A token in its grace period would stop its gateway when that ends.
  if (token === undefined || (token.rotatedAt === null && tokenStatus(token, clock.now()) === 'active'))
    return sealed.secret
  await ledger.write([sealedRuntimeToken.replace(options, sealed, makeSecret('token', randomBytes))])
  return await runtimeTokenInForce(options)
}

async function makeRuntimeToken(options: FirstStartOptions, secret: string): Promise<void> {
  const teamId = await defaultTeam(options.ledger)
  const formerGateway = await gatewayOfFormer(options)
  const gatewayId = formerGateway ?? options.newId()
  const draft: Draft & { secret: string } = {
    name: 'local gateway',
    metadata: {},
    profile: { purpose: 'gateway_runtime', principalType: 'gateway_runtime', keyClass: 'durable' },
    scope: { ...unbound, gatewayId, teamId, roles: ['runtime'] },
    ownership: { ownerKind: 'team', ownerId: teamId, eventTeamId: teamId },
    createdBy: installer.name,
    secret,
  }
  const ofThisName = and(eq(gateways.name, nameDigest(gatewayName)), eq(gateways.deleted, 0))
  const name =
    (await query(options.state).$count(gateways, ofThisName)) === 0
      ? gatewayName
      : `${gatewayName}-${gatewayId.slice(-8)}`
  const gateway = statement(
    insert(gateways).values({ id: gatewayId, name: nameDigest(name), version: newStateVersion }),
  )
  const made = { state: [gateway], ledger: [keepName(gatewayId, name)] }
  await makeOnce(options, draft, formerGateway === null ? made : nothing)
}

/** The gateway that runtime tokens of former starts are for, unless it has been deleted. */
async function gatewayOfFormer({ state, ledger }: FirstStartOptions): Promise<string | null> {
  const former = await query(ledger)
    .select({ gatewayId: ledgerTokens.gatewayId })
    .from(ledgerTokens)
    .where(and(eq(ledgerTokens.purpose, 'gateway_runtime'), eq(ledgerTokens.createdBy, installer.name)))
    .orderBy(desc(ledgerTokens.createdAt), desc(ledgerTokens.id))
    .get()
  const id = former?.gatewayId ?? null
  if (id === null) return null
  return (await query(state).$count(gateways, and(eq(gateways.id, id), eq(gateways.deleted, 0)))) === 0 ? null : id
}

/** Makes the token of this secret, with what belongs to it, unless there is one already. */
async function makeOnce(
  options: FirstStartOptions,
  draft: Draft & { secret: string },
  beside: Beside = nothing,
): Promise<void> {
  const hash = hashSecret(draft.secret)
  const isMade = async () => (await query(options.state).$count(tokens, eq(tokens.hash, hash))) > 0
  if (await isMade()) return
  const { token, state, ledger } = mint(draft, options)
  const event = tokenEvent(
    {
      type: 'token.created',
      actor: { principal: installer, requestId },
      token,
      eventTeamId: draft.ownership.eventTeamId,
      details: { token_id: token.id, name: token.name, ...scopeDetails(token) },
    },
    options,
  )
  try {
    await options.recorder.change({
      event,
      guard: condition(sql`not ${hasRow(tokens, eq(tokens.hash, hash))}`),
      state: [...beside.state, ...state],
      ledger: [...beside.ledger, ...ledger],
    })
  } catch (error) {
    if (!(await isMade())) throw error
  }
}

async function defaultTeam(ledger: Database): Promise<string> {
  const team = await query(ledger).select({ id: teams.id }).from(teams).where(eq(teams.name, 'default')).get()
  if (team === undefined) throw new Failure('conflict', { message: 'There is no team named default' })
  return team.id
}
