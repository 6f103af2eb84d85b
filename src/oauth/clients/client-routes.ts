/** `/v1/oauth/clients`: registering applications, and taking them out of service. */
import { z } from 'zod'
import { entityTag, requireVersion } from '../../api/entity-tag.ts'
import { cutPage, pageQuery, startOf } from '../../api/page.ts'
import { type AnyRoute, type Call, route } from '../../api/route.ts'
import { Failure } from '../../failure.ts'
import { changesOf, recordChange } from '../../members/member-event.ts'
import type { OAuthDependencies } from '../dependencies.ts'
import { oauthEvent } from '../oauth-event.ts'
import { activeScopes, scopeSentences, scopes, writeScope } from '../scope.ts'
import { type Client, clientChanges, clientRecord, clientSchema, clientStatuses, newClientBody } from './client.ts'
import { addClient, changeClient, findClient, readClients } from './stored-client.ts'

const clientParams = z.object({ client_id: z.uuid() })
const tag = 'OAuth'

export const clientRoutes = (dependencies: OAuthDependencies): AnyRoute[] => [
  listScopes(dependencies),
  createClient(dependencies),
  listClients(dependencies),
  getClient(dependencies),
  updateClient(dependencies),
  switchClient(dependencies, 'deactivate'),
  switchClient(dependencies, 'activate'),
]

const listScopes = ({ settings }: OAuthDependencies): AnyRoute =>
  route({
    method: 'GET',
    path: '/v1/oauth/scopes',
    tag,
    summary: 'What people may delegate to applications',
    access: 'oauth-clients:read',
    reply: z.object({
      scopes: z.array(z.object({ scope: z.enum(scopes), sentence: z.string(), active: z.boolean() })),
    }),
    handle() {
      const active = activeScopes(settings.oauth_scopes)
      const describe = (scope: (typeof scopes)[number]) => ({
        scope,
        sentence: scopeSentences[scope],
        active: active.includes(scope),
      })
      return { reply: { scopes: scopes.map(describe) } }
    },
  })

const createClient = (dependencies: OAuthDependencies): AnyRoute =>
  route({
    method: 'POST',
    path: '/v1/oauth/clients',
    tag,
    summary: 'Registers an application: a public client that proves itself by PKCE',
    access: 'oauth-clients:write',
    body: newClientBody,
    reply: clientSchema,
    status: 201,
    async handle({ principal, body, requestId }) {
      const { newId, clock, recorder } = dependencies
      const id = newId()
      const { client_name, redirect_uris, scope } = body
      const client = {
        id,
        name: client_name,
        redirectUris: redirect_uris,
        scope: scope.split(' '),
        createdAt: clock.now(),
        createdBy: principal.name,
      }
      const details = { client_name, redirect_uris, scope }
      const event = await oauthEvent(dependencies, {
        type: 'oauth.client_created',
        principal,
        requestId,
        clientId: id,
        details,
      })
      await recordChange(recorder, { event, ledger: [addClient(client)] })
      return await answer(dependencies, id)
    },
  })

const listClients = ({ ledger }: OAuthDependencies): AnyRoute =>
  route({
    method: 'GET',
    path: '/v1/oauth/clients',
    tag,
    summary: 'Lists applications, in the order they were registered',
    access: 'oauth-clients:read',
    query: z.object({ status: z.enum(clientStatuses).optional(), ...pageQuery }),
    reply: z.object({ clients: z.array(clientSchema), next_cursor: z.string().nullable() }),
    async handle({ query: { status, limit, cursor } }) {
      const filters = { status }
      const start = startOf(cursor, filters) ?? ''
      const found = await readClients(ledger, { status, start, count: limit + 1 })
      const { rows, next_cursor } = cutPage(found, limit, filters)
      return { reply: { clients: rows.map(clientRecord), next_cursor } }
    },
  })

const getClient = (dependencies: OAuthDependencies): AnyRoute =>
  route({
    method: 'GET',
    path: '/v1/oauth/clients/{client_id}',
    tag,
    summary: 'One application',
    access: 'oauth-clients:read',
    params: clientParams,
    reply: clientSchema,
    handle: ({ params: { client_id } }) => answer(dependencies, client_id),
  })

const updateClient = (dependencies: OAuthDependencies): AnyRoute =>
  route({
    method: 'PATCH',
    path: '/v1/oauth/clients/{client_id}',
    tag,
    summary: 'Changes an application; what people approved before is refreshed within the new scope only',
    access: 'oauth-clients:write',
    params: clientParams,
    body: clientChanges,
    reply: clientSchema,
    async handle({ principal, params: { client_id: id }, body, headers, requestId }) {
      const before = await requireClient(dependencies, id)
      requireVersion(headers, before.version)
      const after: Client = {
        ...before,
        name: body.client_name ?? before.name,
        redirectUris: body.redirect_uris ?? before.redirectUris,
        scope: body.scope?.split(' ') ?? before.scope,
      }
      const changes = changesOf(shown(before), shown(after), ['client_name', 'redirect_uris', 'scope'])
      if (Object.keys(changes).length === 0) return await answer(dependencies, id)
      const event = await oauthEvent(dependencies, {
        type: 'oauth.client_updated',
        principal,
        requestId,
        clientId: id,
        details: { changes },
      })
      const { name, redirectUris, scope } = after
      const ledger = changeClient(before, { name, redirectUris, scope })
      await recordChange(dependencies.recorder, { event, ledger })
      return await answer(dependencies, id)
    },
  })

/** What of a client may change, each as one text, so that equal lists are equal. */
const shown = ({ name, redirectUris, scope }: Client) => ({
  client_name: name,
  redirect_uris: redirectUris.join(' '),
  scope: writeScope(scope),
})

function switchClient(dependencies: OAuthDependencies, what: 'activate' | 'deactivate'): AnyRoute {
  const off = what === 'deactivate'
  return route({
    method: 'POST',
    path: `/v1/oauth/clients/{client_id}/${what}`,
    tag,
    summary: off
      ? 'Stops new authorizations and refreshes; access tokens live on until they expire or are revoked'
      : 'Puts an application back into service',
    access: 'oauth-clients:write',
    params: clientParams,
    reply: clientSchema,
    async handle({
      principal,
      params: { client_id: id },
      headers,
      requestId,
    }: Call<{ client_id: string }, unknown, unknown>) {
      const before = await requireClient(dependencies, id)
      requireVersion(headers, before.version)
      if ((before.deactivatedAt !== null) === off) return await answer(dependencies, id)
      const event = await oauthEvent(dependencies, {
        type: off ? 'oauth.client_deactivated' : 'oauth.client_activated',
        principal,
        requestId,
        clientId: id,
        details: { client_name: before.name },
      })
      const ledger = changeClient(before, { deactivatedAt: off ? dependencies.clock.now() : null })
      await recordChange(dependencies.recorder, { event, ledger })
      return await answer(dependencies, id)
    },
  })
}

async function requireClient({ ledger }: OAuthDependencies, id: string): Promise<Client> {
  const client = await findClient(ledger, id)
  if (client === null) throw new Failure('not_found', { message: 'There is no such application' })
  return client
}

async function answer(dependencies: OAuthDependencies, id: string) {
  const client = await requireClient(dependencies, id)
  return { reply: clientRecord(client), headers: { etag: entityTag(client.version) } }
}
