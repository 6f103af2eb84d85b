/** `/v1/gateways`: the records that runtime tokens are bound to, and what holds at each of these gateways. */
import type { SQL } from 'drizzle-orm'
import { and, eq, gt, isNull, not, or } from 'drizzle-orm'
import type { z } from 'zod'
import { type PageQuery, recordPage } from '../../api/page.ts'
import { type RecordCall, resourceRoutes } from '../../api/resource-routes.ts'
import { Failure } from '../../failure.ts'
import { hasRow, insert, isOneOf, newStateVersion, query, statement, update } from '../../store/query.ts'
import { changeName, dropName, keepName, nameDigest, readNames } from '../../store/schema/gateway-name.ts'
import { teams, users } from '../../store/schema/ledger/people.ts'
import { gateways, providers as providerTable } from '../../store/schema/state/catalog.ts'
import { tokens } from '../../store/schema/state/tokens.ts'
import {
  atVersion,
  type CatalogDependencies,
  changeable,
  changeCatalog,
  holds,
  madeAt,
  missing,
  nameIsFree,
  wrong,
} from './catalog-change.ts'
import {
  type createGatewayBody,
  gatewayResource,
  type gatewaySchema,
  type updateGatewayBody,
} from './gateway-resource.ts'

type GatewayRow = typeof gateways.$inferSelect

export const gatewayRoutes = (deps: CatalogDependencies) =>
  resourceRoutes(gatewayResource, {
    list: (query) => listGateways(deps, query),
    get: async (id) => await gatewayRecord(deps, await requireGateway(deps, id)),
    create: (body, call) => createGateway(deps, call, body),
    update: async (id, body, call) =>
      await updateGateway(deps, call, changeable(call, await requireGateway(deps, id)), body),
    remove: async (id, call) => await deleteGateway(deps, call, changeable(call, await requireGateway(deps, id))),
  })

async function createGateway(deps: CatalogDependencies, call: RecordCall, body: z.infer<typeof createGatewayBody>) {
  const id = deps.newId()
  await requireFreeName(deps, body.name, id)
  await requireOwner(deps, body.spend_owner)
  const providers = await providerIds(deps, body.providers ?? null)
  await changeCatalog(deps, call, {
    type: 'catalog.created',
    details: { gateway_id: id, ...body },
    guard: nameIsFree(gateways, nameDigest(body.name), id),
    state: [
      statement(
        insert(gateways).values({
          id,
          name: nameDigest(body.name),
          spendOwner: body.spend_owner ?? null,
          promptCaching: body.prompt_caching ? 1 : 0,
          providers,
          version: newStateVersion,
        }),
      ),
    ],
    ledger: [keepName(id, body.name)],
  })
  return await gatewayRecord(deps, await requireGateway(deps, id))
}

const listGateways = (deps: CatalogDependencies, page: PageQuery) =>
  recordPage(page, {
    filters: { list: 'gateways' },
    read: (after, count) =>
      query(deps.state)
        .select()
        .from(gateways)
        .where(and(gt(gateways.id, after), eq(gateways.deleted, 0)))
        .orderBy(gateways.id)
        .limit(count),
    show: (rows) => Promise.all(rows.map((row) => gatewayRecord(deps, row))),
  })

async function updateGateway(
  deps: CatalogDependencies,
  call: RecordCall,
  before: GatewayRow,
  body: z.infer<typeof updateGatewayBody>,
) {
  const { id } = before
  const { name } = body
  if (name !== undefined) await requireFreeName(deps, name, id)
  await requireOwner(deps, body.spend_owner)
  await changeCatalog(deps, call, {
    type: 'catalog.updated',
    details: { gateway_id: id, ...body },
    guard: and(
      atVersion(gateways, before),
      name === undefined ? undefined : nameIsFree(gateways, nameDigest(name), id),
    ),
    state: [
      statement(
        update(gateways)
          .set({
            ...(name === undefined ? {} : { name: nameDigest(name) }),
            ...(body.spend_owner === undefined ? {} : { spendOwner: body.spend_owner }),
            ...(body.prompt_caching === undefined ? {} : { promptCaching: body.prompt_caching ? 1 : 0 }),
            ...(body.providers === undefined ? {} : { providers: await providerIds(deps, body.providers) }),
            version: newStateVersion,
          })
          .where(eq(gateways.id, id)),
      ),
    ],
    ledger: name === undefined ? [] : [changeName(id, name)],
  })
  return await gatewayRecord(deps, await requireGateway(deps, id))
}

async function deleteGateway(deps: CatalogDependencies, call: RecordCall, before: GatewayRow) {
  const { id } = before
  const bound = boundTokens(id, deps.clock.now())
  if (await holds(deps.state, bound)) {
    throw new Failure('conflict', { message: 'Tokens in force are bound to this gateway: revoke them first' })
  }
  const reply = await gatewayRecord(deps, before)
  await changeCatalog(deps, call, {
    type: 'catalog.deleted',
    details: { gateway_id: id, name: reply.name },
    guard: and(atVersion(gateways, before), not(bound)),
    state: [statement(update(gateways).set({ deleted: 1, version: newStateVersion }).where(eq(gateways.id, id)))],
    ledger: [dropName(id)],
  })
  return reply
}

/** The condition that tokens in force are bound to a gateway. */
const boundTokens = (gatewayId: string, now: number): SQL =>
  hasRow(
    tokens,
    and(
      eq(tokens.gatewayId, gatewayId),
      eq(tokens.deleted, 0),
      isNull(tokens.revokedAt),
      or(isNull(tokens.rotatedAt), gt(tokens.rotatedAt, now)),
      or(isNull(tokens.expiresAt), gt(tokens.expiresAt, now)),
    ),
  )

async function requireGateway({ state }: CatalogDependencies, id: string): Promise<GatewayRow> {
  const found = and(eq(gateways.id, id), eq(gateways.deleted, 0))
  const row = await query(state).select().from(gateways).where(found).get()
  if (row === undefined) throw missing('gateway')
  return row
}

async function gatewayRecord(
  { state, ledger }: CatalogDependencies,
  { id, spendOwner, promptCaching, providers, version }: GatewayRow,
): Promise<z.infer<typeof gatewaySchema>> {
  const named =
    providers === null
      ? null
      : await query(state)
          .select({ name: providerTable.name })
          .from(providerTable)
          .where(and(eq(providerTable.deleted, 0), isOneOf(providerTable.id, JSON.parse(providers))))
          .orderBy(providerTable.position)
  return {
    id,
    name: (await readNames(ledger, [id]))(id),
    spend_owner: spendOwner,
    prompt_caching: promptCaching === 1,
    providers: named === null ? null : named.map((provider) => provider.name),
    version,
    created_at: madeAt(id),
  }
}

/** Records hold ids, so that a provider's new name changes nothing. Throws `invalid_parameter` for an unknown name. */
async function providerIds({ state }: CatalogDependencies, names: readonly string[] | null): Promise<string | null> {
  if (names === null) return null
  const ids: string[] = []
  for (const [index, name] of names.entries()) {
    const named = and(eq(providerTable.name, name), eq(providerTable.deleted, 0))
    const row = await query(state).select({ id: providerTable.id }).from(providerTable).where(named).get()
    if (row === undefined) throw wrong(`providers.${index}`, 'There is no provider of this name')
    ids.push(row.id)
  }
  return JSON.stringify(ids)
}

async function requireOwner({ ledger }: CatalogDependencies, owner: string | null | undefined): Promise<void> {
  if (owner === null || owner === undefined || owner === 'organization') return
  const [kind, id = ''] = owner.split(':')
  const owners = kind === 'user' ? users : teams
  const found = await query(ledger).$count(owners, eq(owners.id, id))
  if (found === 0) throw wrong('spend_owner', `There is no such ${kind}`)
}

async function requireFreeName({ state }: CatalogDependencies, name: string, id: string): Promise<void> {
  if (await holds(state, nameIsFree(gateways, nameDigest(name), id))) return
  throw new Failure('conflict', { message: 'There is a gateway of this name already', param: 'name' })
}
