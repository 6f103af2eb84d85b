/** `/v1/gateways`: the records that runtime tokens are bound to, and what holds at each of these gateways. */
import type { SQL } from 'drizzle-orm'
import { and, eq, gt, isNull, not, or } from 'drizzle-orm'
import { Elysia } from 'elysia'
import { z } from 'zod'
import { conventions } from '../../api/conventions.ts'
import { pageQuery } from '../../api/page.ts'
import { idParams } from '../../api/resource.ts'
import { Failure } from '../../failure.ts'
import { hasRow, insert, isOneOf, newStateVersion, query, statement, update } from '../../store/query.ts'
import { changeName, dropName, keepName, nameDigest, readNames } from '../../store/schema/gateway-name.ts'
import { teams, users } from '../../store/schema/ledger/people.ts'
import { gateways, providers as providerTable } from '../../store/schema/state/catalog.ts'
import { tokens } from '../../store/schema/state/tokens.ts'
import { recordRoutes } from '../record-routes.ts'
import {
  atVersion,
  type CatalogCall,
  type CatalogDependencies,
  changeCatalog,
  holds,
  madeAt,
  missing,
  nameIsFree,
  recordPage,
  wrong,
} from './catalog-change.ts'
import { createGatewayBody, gatewaySchema, updateGatewayBody } from './gateway-resource.ts'

const path = '/v1/gateways'
const tag = 'Gateways'

type GatewayRow = typeof gateways.$inferSelect

export const gatewayRoutes = (deps: CatalogDependencies) =>
  new Elysia({ name: 'gateway' })
    .use(conventions)
    .post(
      path,
      async ({ principal, requestId, body, status }) =>
        status(201, await createGateway(deps, { principal, requestId }, body)),
      {
        versioned: true,
        access: 'catalog:write',
        body: createGatewayBody,
        response: { 201: gatewaySchema },
        detail: { tags: [tag], summary: 'Makes the record of a gateway, to which a runtime token is then bound' },
      },
    )
    .get(path, ({ query }) => listGateways(deps, query), {
      access: 'catalog:read',
      query: z.strictObject(pageQuery),
      response: z.object({ gateways: z.array(gatewaySchema), next_cursor: z.string().nullable() }),
      detail: { tags: [tag], summary: 'Lists gateways, in the order they were made' },
    })
    .use(
      recordRoutes({
        path,
        tag,
        summaries: {
          get: 'One gateway',
          update: 'Changes a gateway; null takes a field back to what holds without it',
          remove: 'Deletes a gateway to which no token in force is bound; gives its last record',
        },
        params: idParams,
        body: updateGatewayBody,
        reply: gatewaySchema,
        find: (id) => requireGateway(deps, id),
        show: (row) => gatewayRecord(deps, row),
        update: (call, before, body) => updateGateway(deps, call, before, body),
        remove: (call, before) => deleteGateway(deps, call, before),
      }),
    )

async function createGateway(deps: CatalogDependencies, call: CatalogCall, body: z.infer<typeof createGatewayBody>) {
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

async function listGateways(deps: CatalogDependencies, asked: { limit: number; cursor?: string | undefined }) {
  const { records, next_cursor } = await recordPage(asked, {
    list: 'gateways',
    read: (after, count) =>
      query(deps.state)
        .select()
        .from(gateways)
        .where(and(gt(gateways.id, after), eq(gateways.deleted, 0)))
        .orderBy(gateways.id)
        .limit(count),
    show: (row) => gatewayRecord(deps, row),
  })
  return { gateways: records, next_cursor }
}

async function updateGateway(
  deps: CatalogDependencies,
  call: CatalogCall,
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

async function deleteGateway(deps: CatalogDependencies, call: CatalogCall, before: GatewayRow) {
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
