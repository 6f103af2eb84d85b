/**
 * `/v1/identity-providers`: by which providers people sign in. Only an owner changes one, because its groups can make
 * owners.
 */
import { requireVersion } from '../../api/entity-tag.ts'
import { recordPage } from '../../api/page.ts'
import { resourceRoutes } from '../../api/resource-routes.ts'
import type { EventType } from '../../events/event-types.ts'
import { Failure } from '../../failure.ts'
import type { Principal } from '../../identity/principal.ts'
import { timestamp } from '../../lib/clock.ts'
import type { MemberDependencies } from '../dependencies.ts'
import { memberEvent, recordChange } from '../member-event.ts'
import { findTeam } from '../teams/stored-team.ts'
import {
  configSchema,
  type IdentityProvider,
  identityProviderResource,
  type ProviderConfig,
} from './identity-provider-resource.ts'
import {
  addProvider,
  changeProvider,
  clientSecretOf,
  configOf,
  deleteProvider,
  findProvider,
  listProviders,
  type ProviderRow,
  setClientSecret,
} from './stored-identity-provider.ts'

export const identityProviderRoutes = (dependencies: MemberDependencies) => {
  const { ledger, recorder, clock, newId, masterKey } = dependencies
  const eventOf = (type: EventType, call: Call, { id, issuer }: ProviderRow, fields: readonly string[]) =>
    memberEvent(dependencies, { ...call, type, details: { identity_provider_id: id, issuer, fields } })
  return resourceRoutes(identityProviderResource, {
    list: (query) =>
      recordPage(query, {
        filters: { list: 'identity_providers' },
        read: (start, count) => listProviders(ledger, start, count),
        show: (rows) => Promise.all(rows.map((row) => providerRecord(dependencies, row))),
      }),
    get: async (id) => await providerRecord(dependencies, await requireProvider(dependencies, id)),
    async create({ name, issuer, client_id: clientId, client_secret, enabled, ...config }, { principal, requestId }) {
      requireOwner(principal)
      await checkConfig(dependencies, issuer, config)
      const row: ProviderRow = {
        ...{ id: newId(), name, issuer, clientId, config: JSON.stringify(config) },
        ...{ enabled: enabled ? 1 : 0, createdAt: clock.now(), version: 1 },
      }
      const event = await eventOf('identity_provider.created', { principal, requestId }, row, [])
      const secret = setClientSecret(masterKey, row.id, client_secret ?? null, clock.now())
      await recordChange(recorder, { event, ledger: [addProvider(row), ...secret] }, taken)
      return await answer(dependencies, row.id)
    },
    async update(id, { client_secret, name, client_id, enabled, ...config }, { principal, requestId, headers }) {
      requireOwner(principal)
      const before = await requireProvider(dependencies, id)
      requireVersion(headers, before.version)
      const changed = configSchema.parse({ ...configOf(before), ...given(config) })
      await checkConfig(dependencies, before.issuer, changed)
      const after: ProviderRow = {
        ...before,
        name: name ?? before.name,
        clientId: client_id ?? before.clientId,
        config: JSON.stringify(changed),
        enabled: enabled === undefined ? before.enabled : Number(enabled),
      }
      const fields = Object.keys(given({ client_secret, name, client_id, enabled, ...config }))
      const event = await eventOf('identity_provider.updated', { principal, requestId }, before, fields)
      const secret = client_secret === undefined ? [] : setClientSecret(masterKey, id, client_secret, clock.now())
      await recordChange(recorder, { event, ledger: [...changeProvider(before, after, clock.now()), ...secret] }, taken)
      return await answer(dependencies, id)
    },
    async remove(id, { principal, requestId, headers }) {
      requireOwner(principal)
      const before = await requireProvider(dependencies, id)
      requireVersion(headers, before.version)
      const last = await providerRecord(dependencies, before)
      const event = await eventOf('identity_provider.deleted', { principal, requestId }, before, [])
      await recordChange(recorder, { event, ledger: deleteProvider(before) })
      return last
    },
  })
}

interface Call {
  principal: Principal
  requestId: string
}

const taken = { message: 'There is an identity provider of this name or this issuer already' }

const given = (fields: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))

/** Who writes the mapping of groups can make anybody an owner. */
export function requireOwner(principal: Principal): void {
  if (principal.roles.includes('owner')) return
  throw new Failure('permission_denied', { message: 'Only an owner can change identity providers' })
}

/** Google vouches for everybody who has an account there, of whatever company. */
const google = 'https://accounts.google.com'

/** Refuses what no schema can: teams that are not there, and a provider that would let in everybody there is. */
async function checkConfig({ ledger }: MemberDependencies, issuer: string, config: ProviderConfig): Promise<void> {
  if (issuer === google && config.domains.length === 0) {
    throw new Failure('invalid_parameter', {
      param: 'domains',
      message: 'Anybody can have an account at Google: name the domains of your organization',
    })
  }
  for (const [index, { team_ids }] of config.groups.entries()) {
    const found = await Promise.all(team_ids.map((id) => findTeam(ledger, id)))
    const missing = found.indexOf(null)
    if (missing < 0) continue
    throw new Failure('invalid_parameter', {
      param: `groups.${index}.team_ids.${missing}`,
      message: 'There is no such team',
    })
  }
}

async function requireProvider({ ledger }: Pick<MemberDependencies, 'ledger'>, id: string): Promise<ProviderRow> {
  const row = await findProvider(ledger, id)
  if (row === null) throw new Failure('not_found', { message: 'There is no such identity provider' })
  return row
}

const answer = async (dependencies: MemberDependencies, id: string): Promise<IdentityProvider> =>
  await providerRecord(dependencies, await requireProvider(dependencies, id))

async function providerRecord(dependencies: MemberDependencies, row: ProviderRow): Promise<IdentityProvider> {
  const { id, name, issuer, clientId: client_id, enabled, createdAt, version } = row
  return {
    ...{ id, name, issuer, client_id },
    has_client_secret: (await clientSecretOf(dependencies, id)) !== null,
    ...configOf(row),
    enabled: enabled === 1,
    redirect_uri: redirectUriOf(dependencies, id),
    created_at: timestamp(createdAt),
    version,
  }
}

/** Each provider has an address of its own, so that no answer is taken for another one's (RFC 9700 section 4.4). */
export const redirectUriOf = ({ baseUrl }: Pick<MemberDependencies, 'baseUrl'>, id: string): string =>
  `${baseUrl()}/v1/auth/callback/${id}`
