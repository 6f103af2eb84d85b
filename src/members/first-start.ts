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

import { controlPlaneEvent } from '../events/control-plane-event.ts'
import type { Recorder } from '../events/recorder.ts'
import { Failure } from '../failure.ts'
import { anonymous, type Principal } from '../identity/principal.ts'
import { hashSecret, makeSecret } from '../identity/secret.ts'
import type { Clock } from '../lib/clock.ts'
import type { NewId } from '../lib/ids.ts'
import { keepSecret, openSecret } from '../store/keys/master-key.ts'
import type { Database } from '../store/open.ts'
import { fromRow, insertRow, newStateVersion } from '../store/rows.ts'
import { keepName, nameDigest } from '../store/schema/gateway-name.ts'
import { memberships, organizations, teams, users } from '../store/schema/ledger/people.ts'
import { gateways } from '../store/schema/state/catalog.ts'
import { tokens as stateTokens } from '../store/schema/state/tokens.ts'
import type { Statement } from '../store/statement.ts'
import { type Draft, mint, scopeDetails, tokenEvent } from '../tokens/creation/minting.ts'
import { tokenStatus } from '../tokens/governed-token.ts'
import { sealedRuntimeToken } from '../tokens/runtime/sealed-runtime-token.ts'
import type { TokenScope } from '../tokens/scope.ts'

export interface FirstStartOptions {
  state: Database
  ledger: Database
  recorder: Recorder
  masterKey: Uint8Array
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
  if ((await organization(ledger)) === null) await makeOrganization(options)
  const made = await organization(ledger)
  const runtimeToken = await runtimeTokenInForce(options)
  if (made === null || runtimeToken === null) {
    throw new Failure('conflict', {
      message: 'The ledger is not one that this product made: its first records are missing',
    })
  }
  const adminToken = await openSecret(ledger, masterKey, names.admin)
  if (adminToken !== null) await makeAdminToken(options, adminToken)
  return {
    organizationId: made.id,
    runtimeToken,
    adminToken,
    shown: () => ledger.write([{ sql: 'delete from secrets where name = ?', args: [names.admin] }]),
  }
}

async function organization(ledger: Database): Promise<{ id: string } | null> {
  const [row] = await ledger.read<{ id: string }>('select id from organizations')
  return row ?? null
}

async function makeOrganization(options: FirstStartOptions): Promise<void> {
  const { recorder, ledger, masterKey, clock, newId, randomBytes } = options
  const [organizationId, teamId, userId] = [newId(), newId(), newId()]
  const createdAt = clock.now()
  const promptHashKey = JSON.stringify({ id: newId(), key: Buffer.from(randomBytes(32)).toString('base64') })
  const event = controlPlaneEvent({
    type: 'member.created',
    principal: installer,
    requestId,
    teamId,
    details: { organization_id: organizationId, team_id: teamId, team: 'default', user_id: userId, role: 'owner' },
    configVersion: 0,
    clock,
    newId,
  })
  try {
    await recorder.change({
      event,
      state: [],
      ledger: [
        insertRow(organizations, { id: organizationId, name: 'default', createdAt }),
        insertRow(teams, { id: teamId, name: 'default', createdAt }),
        insertRow(users, {
          id: userId,
          email: 'owner@localhost',
          name: 'Owner',
          role: 'owner',
          status: 'active',
          createdAt,
        }),
        insertRow(memberships, { teamId, userId, createdAt }),
        keepSecret(masterKey, sealedRuntimeToken.name, makeSecret('token', randomBytes), createdAt),
        keepSecret(masterKey, names.admin, makeSecret('token', randomBytes), createdAt),
        keepSecret(masterKey, names.promptHash, promptHashKey, createdAt),
      ],
    })
  } catch (error) {
    // Another process that started at the same time was first; then its organization is there and ours is not.
    if ((await organization(ledger)) === null) throw error
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
  const [row] = await state.read('select * from tokens where hash = ?', [hashSecret(sealed.secret)])
  const token = row === undefined ? null : fromRow(stateTokens, row)
  if (token === null) await makeRuntimeToken(options, sealed.secret)
  // A token in its grace period would stop its gateway when that ends.
  if (token === null || (token.rotatedAt === null && tokenStatus(token, clock.now()) === 'active')) return sealed.secret
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
  const isTaken = 'select 1 from gateways where name = ? and deleted = 0'
  const taken = await options.state.read(isTaken, [nameDigest(gatewayName)])
  const name = taken.length === 0 ? gatewayName : `${gatewayName}-${gatewayId.slice(-8)}`
  const gateway = insertRow(gateways, { id: gatewayId, name: nameDigest(name) }, { version: newStateVersion })
  const made = { state: [gateway], ledger: [keepName(gatewayId, name)] }
  await makeOnce(options, draft, formerGateway === null ? made : nothing)
}

/** The gateway that runtime tokens of former starts are for, unless it has been deleted. */
async function gatewayOfFormer({ state, ledger }: FirstStartOptions): Promise<string | null> {
  const [former] = await ledger.read<{ gateway_id: string }>(
    `select gateway_id from tokens where purpose = 'gateway_runtime' and created_by = ? order by created_at desc, id desc limit 1`,
    [installer.name],
  )
  if (former === undefined) return null
  const [gateway] = await state.read<{ id: string }>('select id from gateways where id = ? and deleted = 0', [
    former.gateway_id,
  ])
  return gateway?.id ?? null
}

/** Makes the token of this secret, with what belongs to it, unless there is one already. */
async function makeOnce(
  options: FirstStartOptions,
  draft: Draft & { secret: string },
  beside: Beside = nothing,
): Promise<void> {
  const hash = hashSecret(draft.secret)
  const isMade = async () => (await options.state.read('select 1 from tokens where hash = ?', [hash])).length > 0
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
      guard: { sql: 'select not exists (select 1 from tokens where hash = ?)', args: [hash] },
      state: [...beside.state, ...state],
      ledger: [...beside.ledger, ...ledger],
    })
  } catch (error) {
    if (!(await isMade())) throw error
  }
}

async function defaultTeam(ledger: Database): Promise<string> {
  const [team] = await ledger.read<{ id: string }>("select id from teams where name = 'default'")
  if (team === undefined) throw new Failure('conflict', { message: 'There is no team named default' })
  return team.id
}
