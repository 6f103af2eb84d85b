/** `/v1/oauth/clients`: registering applications, and taking them out of service. */
import { Elysia } from 'elysia'
import { z } from 'zod'
import { conventions } from '../../api/conventions.ts'
import { requireVersion } from '../../api/entity-tag.ts'
import { cutPage, pageQuery, startOf } from '../../api/page.ts'
import { Failure } from '../../failure.ts'
import type { Principal } from '../../identity/principal.ts'
import { changesOf, recordChange } from '../../members/member-event.ts'
import type { OAuthDependencies } from '../dependencies.ts'
import { oauthEvent } from '../oauth-event.ts'
import { activeScopes, scopeSentences, scopes, writeScope } from '../scope.ts'
import { type Client, clientRecord } from './client.ts'
import { clientChanges, clientParams, clientSchema, clientStatuses, newClientBody } from './client-resource.ts'
import { addClient, changeClient, findClient, readClients } from './stored-client.ts'

const tag = 'OAuth'

export const clientRoutes = (dependencies: OAuthDependencies) => {
  const { settings, ledger } = dependencies
  return new Elysia({ name: 'client' })
    .use(conventions)
    .get(
      '/v1/oauth/scopes',
      () => {
        const active = activeScopes(settings.oauth_scopes)
        const describe = (scope: (typeof scopes)[number]) => ({
          scope,
          sentence: scopeSentences[scope],
          active: active.includes(scope),
        })
        return { scopes: scopes.map(describe) }
      },
      {
        access: 'oauth-clients:read',
        response: z.object({
          scopes: z.array(z.object({ scope: z.enum(scopes), sentence: z.string(), active: z.boolean() })),
        }),
        detail: { tags: [tag], summary: 'What people may delegate to applications' },
      },
    )
    .post(
      '/v1/oauth/clients',
      async ({ principal, body, requestId, status }) => {
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
        return status(201, await answer(dependencies, id))
      },
      {
        access: 'oauth-clients:write',
        body: newClientBody,
        versioned: true,
        response: { 201: clientSchema },
        detail: { tags: [tag], summary: 'Registers an application: a public client that proves itself by PKCE' },
      },
    )
    .get(
      '/v1/oauth/clients',
      async ({ query: { status, limit, cursor } }) => {
        const filters = { status }
        const start = startOf(cursor, filters) ?? ''
        const found = await readClients(ledger, { status, start, count: limit + 1 })
        const { rows, next_cursor } = cutPage(found, limit, filters)
        return { clients: rows.map(clientRecord), next_cursor }
      },
      {
        access: 'oauth-clients:read',
        query: z.strictObject({ status: z.enum(clientStatuses).optional(), ...pageQuery }),
        response: z.object({ clients: z.array(clientSchema), next_cursor: z.string().nullable() }),
        detail: { tags: [tag], summary: 'Lists applications, in the order they were registered' },
      },
    )
    .get('/v1/oauth/clients/:client_id', ({ params: { client_id } }) => answer(dependencies, client_id), {
      access: 'oauth-clients:read',
      params: clientParams,
      versioned: true,
      response: clientSchema,
      detail: { tags: [tag], summary: 'One application' },
    })
    .patch(
      '/v1/oauth/clients/:client_id',
      async ({ principal, params: { client_id: id }, body, requestId, request: { headers } }) => {
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
      {
        access: 'oauth-clients:write',
        params: clientParams,
        body: clientChanges,
        versioned: true,
        ifMatch: true,
        response: clientSchema,
        detail: {
          tags: [tag],
          summary: 'Changes an application; what people approved before is refreshed within the new scope only',
        },
      },
    )
    .post(
      '/v1/oauth/clients/:client_id/deactivate',
      async ({ principal, params: { client_id: id }, requestId, request: { headers } }) => {
        return await answerSwitched(dependencies, { id, off: true, principal, headers, requestId })
      },
      {
        access: 'oauth-clients:write',
        params: clientParams,
        versioned: true,
        ifMatch: true,
        response: clientSchema,
        detail: {
          tags: [tag],
          summary: 'Stops new authorizations and refreshes; access tokens live on until they expire or are revoked',
        },
      },
    )
    .post(
      '/v1/oauth/clients/:client_id/activate',
      async ({ principal, params: { client_id: id }, requestId, request: { headers } }) => {
        return await answerSwitched(dependencies, { id, off: false, principal, headers, requestId })
      },
      {
        access: 'oauth-clients:write',
        params: clientParams,
        versioned: true,
        ifMatch: true,
        response: clientSchema,
        detail: { tags: [tag], summary: 'Puts an application back into service' },
      },
    )
}

/** What of a client may change, each as one text, so that equal lists are equal. */
const shown = ({ name, redirectUris, scope }: Client) => ({
  client_name: name,
  redirect_uris: redirectUris.join(' '),
  scope: writeScope(scope),
})

interface Switch {
  id: string
  /** Whether it is taken out of service. */
  off: boolean
  principal: Principal
  headers: Headers
  requestId: string
}

/** Takes a client out of service, or puts it back; returns its record. */
async function answerSwitched(dependencies: OAuthDependencies, { id, off, principal, headers, requestId }: Switch) {
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
}

async function requireClient({ ledger }: OAuthDependencies, id: string): Promise<Client> {
  const client = await findClient(ledger, id)
  if (client === null) throw new Failure('not_found', { message: 'There is no such application' })
  return client
}

async function answer(dependencies: OAuthDependencies, id: string) {
  return clientRecord(await requireClient(dependencies, id))
}
