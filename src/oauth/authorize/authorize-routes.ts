/**
 * What the consent page calls (oauth/README.md): a preview of what is asked, and the decision. Both take the query of
 * the page as it came, as members of a JSON object; a name that came several times is a list. Both answer with what the
 * page shall do: show the request, show an error, or send the browser to an address that was built here.
 *
 * The person is the one of the browser's session; the decision is a write and so carries the session's CSRF token.
 * Nothing is kept between the two: the decision considers the whole request again, and an approval names the scopes
 * and the account that the page showed. Where others would be granted by now, or by somebody else, nothing is: nobody
 * approves what they have not seen.
 */
import { Elysia } from 'elysia'
import { z } from 'zod'
import { conventions } from '../../api/conventions.ts'
import { Failure } from '../../failure.ts'
import { recordChange } from '../../members/member-event.ts'
import { requireAccount } from '../../members/sessions/authenticate-session.ts'
import type { LiveSession } from '../../members/sessions/session.ts'
import type { Statement } from '../../store/statement.ts'
import type { Client } from '../clients/client.ts'
import { findClient, keepDocumentClient } from '../clients/stored-client.ts'
import { isDocumentId } from '../clients/unvetted-client.ts'
import type { OAuthDependencies } from '../dependencies.ts'
import { activeScopes } from '../scope.ts'
import { newGrant } from '../tokens/grant.ts'
import { type Authorization, type Considered, codeRedirect, considerAuthorization, errorRedirect } from './authorize.ts'
import { refuse } from './check.ts'
import { consentOf, consentQuestion, decisionEvent, requireBrowserSession, requireShown } from './consent.ts'
import { type Parameters, parametersOfObject, single } from './parameters.ts'
import { knownResources } from './resource.ts'

export const authorizeRoutes = (dependencies: OAuthDependencies) =>
  new Elysia({ name: 'authorize' })
    .use(conventions)
    .post(
      '/v1/oauth/authorize/preview',
      async ({ body, request }) => {
        const session = await requireBrowserSession(request, dependencies)
        const evaluated = await consider(dependencies, parametersOfObject(body))
        if (evaluated.kind !== 'ask') return refusalReply(evaluated)
        const { redirectUri } = evaluated.authorization
        const asked = await consentOf(dependencies, evaluated.authorization, session)
        return { ...asked, redirect_uri: redirectUri, redirect_host: new URL(redirectUri).host }
      },
      {
        access: 'signed-in',
        body: asked,
        response: z.union([question, errorPage, redirection]),
        detail: { tags: [tag], summary: 'Returns what the consent page shows for an authorization request' },
      },
    )
    .post(
      '/v1/oauth/authorize/decision',
      async ({
        body: { approve, scopes: shown, user_id: shownUser, client_name: shownName, ...query },
        requestId,
        request,
        showsSecretOf,
      }) => {
        const session = await requireBrowserSession(request, dependencies)
        const evaluated = await consider(dependencies, parametersOfObject(query))
        if (evaluated.kind !== 'ask') return refusalReply(evaluated)
        const { authorization } = evaluated
        if (shownUser !== undefined) requireAccount(session, shownUser)
        if (!approve) return { redirect_to: await deny(dependencies, authorization, session, requestId) }
        requireShown(authorization, { scopes: shown, clientName: shownName, user: shownUser })
        const { redirectTo, grantId } = await authorize(dependencies, authorization, session, requestId)
        showsSecretOf(grantId)
        return { redirect_to: redirectTo }
      },
      {
        access: 'signed-in',
        body: asked.extend({
          approve: z.boolean(),
          scopes: z.array(z.string()).optional().describe('To approve: the scopes that the preview showed'),
          user_id: z.string().optional().describe('To approve: the account that the page showed'),
          client_name: z.string().optional().describe('The name that the page showed; an application may be renamed'),
        }),
        response: z.union([redirection, errorPage]),
        detail: {
          tags: [tag],
          summary: "Records the person's answer to an authorization request and returns the address for the browser",
        },
      },
    )
    .get('/v1/oauth/authorize', retired, {
      access: 'public',
      failures: [410],
      detail: {
        tags: [tag],
        summary: 'Retired: send browsers to the authorization_endpoint of /.well-known/oauth-authorization-server',
      },
    })
    .post('/v1/oauth/authorize', retired, { access: 'public', internal: true })

function retired(): never {
  throw new Failure('gone', { message: 'This route is retired: browsers go to /oauth/authorize of the console' })
}

const tag = 'OAuth'

const errorPage = z.object({
  error_page: z
    .object({ error: z.string(), message: z.string() })
    .describe('To be shown to the person: the request must not be redirected'),
})
const redirection = z.object({ redirect_to: z.string().describe('Where the browser is to go now') })
const question = consentQuestion.extend({
  redirect_uri: z.string(),
  redirect_host: z.string().describe('Host and port of redirect_uri'),
})

/** The query as it came. Whatever stands in it is judged by the tables of `authorize.ts`, never by its form here. */
const asked = z.looseObject({}).describe('Every query parameter of the page; one that came several times as a list')

async function consider(dependencies: OAuthDependencies, parameters: Parameters): Promise<Considered> {
  const { settings, baseUrl, gatewayUrl } = dependencies
  const clientId = single(parameters, 'client_id')
  const { client, fault } = clientId === null ? noClient : await clientToAsk(dependencies, clientId)
  const resources = knownResources({ baseUrl: baseUrl(), gatewayUrl: gatewayUrl() })
  return considerAuthorization(
    { parameters, client, documentFault: fault, active: activeScopes(settings.oauth_scopes), resources },
    baseUrl(),
  )
}

const noClient = { client: null, fault: null }

/** A registered application, or one whose id is the address of its metadata, with what that says now. */
async function clientToAsk(
  { ledger, documents, clock }: OAuthDependencies,
  id: string,
): Promise<{ client: Client | null; fault: string | null }> {
  const known = await findClient(ledger, id)
  if (!isDocumentId(id) || (known !== null && known.deactivatedAt !== null)) return { client: known, fault: null }
  const read = await documents.read(id)
  if (typeof read === 'string') return { client: null, fault: read }
  const createdBy = `document:${new URL(id).host}`
  const first = { createdAt: clock.now(), createdBy, deactivatedAt: null, version: 1 }
  return { client: { ...(known ?? first), ...read }, fault: null }
}

const refusalReply = (evaluated: Exclude<Considered, { kind: 'ask' }>) =>
  evaluated.kind === 'redirect'
    ? { redirect_to: evaluated.to }
    : { error_page: { error: evaluated.refusal.error, message: evaluated.refusal.description } }

const redirected = ({ redirectUri }: Authorization) => ({ details: { redirect_uri: redirectUri } })

async function authorize(
  dependencies: OAuthDependencies,
  authorization: Authorization,
  session: LiveSession,
  requestId: string,
): Promise<{ redirectTo: string; grantId: string }> {
  const grant = newGrant(dependencies, authorization, session.userId)
  const event = await decisionEvent(
    dependencies,
    'oauth.authorized',
    authorization,
    session,
    requestId,
    redirected(authorization),
  )
  const details = { ...event.details, grant_id: grant.id }
  await recordChange(dependencies.recorder, {
    event: { ...event, details },
    ledger: [...documentRow(authorization.client), ...grant.statements],
  })
  return { redirectTo: codeRedirect(authorization, grant.code, dependencies.baseUrl()), grantId: grant.id }
}

/** What a document said at an approval stays as the client's record, which an administrator can deactivate. */
const documentRow = (client: Client): Statement[] => (isDocumentId(client.id) ? [keepDocumentClient(client)] : [])

async function deny(
  dependencies: OAuthDependencies,
  authorization: Authorization,
  session: LiveSession,
  requestId: string,
): Promise<string> {
  const refused = 'access_denied'
  const how = { ...redirected(authorization), refused }
  const event = await decisionEvent(dependencies, 'oauth.denied', authorization, session, requestId, how)
  await dependencies.recorder.append([event])
  return errorRedirect(authorization, refuse(refused, 'The person did not agree'), dependencies.baseUrl())
}
