/** `/v1/oauth/clients`: registering applications, and taking them out of service. */
import { Elysia } from 'elysia'
import { z } from 'zod'
import { conventions } from '../../api/conventions.ts'
import { requireVersion } from '../../api/entity-tag.ts'
import { recordPage } from '../../api/page.ts'
import { resourceRoutes } from '../../api/resource-routes.ts'
import { Failure } from '../../failure.ts'
import type { Principal } from '../../identity/principal.ts'
import { changesOf, recordChange } from '../../members/member-event.ts'
import type { OAuthDependencies } from '../dependencies.ts'
import { oauthEvent } from '../oauth-event.ts'
import { activeScopes, scopeSentences, scopes, writeScope } from '../scope.ts'
import { type Client, clientRecord } from './client.ts'
import { clientParams, clientResource, clientSchema } from './client-resource.ts'
import { registerClient } from './register-client.ts'
import { addClient, changeClient, findClient, readClients } from './stored-client.ts'
import { clientMetadata } from './unvetted-client.ts'

const tag = 'OAuth'

const clientRecords = (dependencies: OAuthDependencies) => {
  const { ledger, recorder, clock, newId } = dependencies
  return resourceRoutes(clientResource, {
    list: ({ status, ...page }) =>
      recordPage(page, {
        filters: { status },
        read: (start, count) => readClients(ledger, { status, start, count }),
        show: (rows) => rows.map(clientRecord),
      }),
    get: (id) => answer(dependencies, id),
    async create(body, { principal, requestId }) {
      const { client_id: id = newId(), client_name, redirect_uris = [], scope } = body
      const { grant_types = ['authorization_code', 'refresh_token'] } = body
      requireRedirects(grant_types, redirect_uris)
      const client = {
        id,
        name: client_name,
        redirectUris: redirect_uris,
        grantTypes: grant_types,
        scope: scope.split(' '),
        createdAt: clock.now(),
        createdBy: principal.name,
      }
      const event = await oauthEvent(dependencies, {
        type: 'oauth.client_created',
        principal,
        requestId,
        clientId: id,
        details: { client_name, redirect_uris, grant_types, scope },
      })
      const taken = { param: 'client_id', message: 'An application of this client_id is registered already' }
      await recordChange(recorder, { event, ledger: [addClient(client)] }, taken)
      return await answer(dependencies, id)
    },
    async update(id, body, { principal, requestId, headers }) {
      const before = await requireClient(dependencies, id)
      requireVersion(headers, before.version)
      const after: Client = {
        ...before,
        name: body.client_name ?? before.name,
        redirectUris: body.redirect_uris ?? before.redirectUris,
        grantTypes: body.grant_types ?? before.grantTypes,
        scope: body.scope?.split(' ') ?? before.scope,
      }
      requireRedirects(after.grantTypes, after.redirectUris)
      const changes = changesOf(shown(before), shown(after), ['client_name', 'redirect_uris', 'grant_types', 'scope'])
      if (Object.keys(changes).length === 0) return await answer(dependencies, id)
      const event = await oauthEvent(dependencies, {
        type: 'oauth.client_updated',
        principal,
        requestId,
        clientId: id,
        details: { changes },
      })
      const { name, redirectUris, grantTypes, scope } = after
      await recordChange(recorder, { event, ledger: changeClient(before, { name, redirectUris, grantTypes, scope }) })
      return await answer(dependencies, id)
    },
  })
}

export const clientRoutes = (dependencies: OAuthDependencies) => {
  const { settings } = dependencies
  return new Elysia({ name: 'client' })
    .use(conventions)
    .use(clientRecords(dependencies))
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

/** There only where the setting allows it. */
export const registrationRoutes = (dependencies: OAuthDependencies) =>
  new Elysia({ name: 'registration' })
    .use(conventions)
    .post('/v1/oauth/register', ({ request, requestId }) => registerClient(dependencies, request, requestId), {
      access: 'public',
      anyOrigin: true,
      failures: [400, 429],
      form: clientMetadata,
      response: { 201: z.looseObject({ client_id: z.string() }) },
      detail: { tags: [tag], summary: 'Registers an application by itself (RFC 7591), where the setting allows it' },
    })

/** A person is sent back with a code to somewhere: throws `invalid_parameter` where there is nowhere. */
function requireRedirects(grantTypes: readonly string[], redirectUris: readonly string[]): void {
  if (redirectUris.length > 0 || !grantTypes.includes('authorization_code')) return
  const message = 'An application that gets authorization codes needs a redirect URI'
  throw new Failure('invalid_parameter', { param: 'redirect_uris', message })
}

/** What of a client may change, each as one text, so that equal lists are equal. */
const shown = ({ name, redirectUris, grantTypes, scope }: Client) => ({
  client_name: name,
  redirect_uris: redirectUris.join(' '),
  grant_types: grantTypes.join(' '),
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
