/**
 * What a person is asked before an application gets anything, whichever way it asks: who asks, for what, as whom. The
 * person is the one of the browser's session; an approval names what the page showed, and where something else would be
 * granted by now, nothing is.
 */
import { z } from 'zod'
import { Failure } from '../../failure.ts'
import { permissionsOf } from '../../identity/permissions.ts'
import { findUser, teamsOfUsers } from '../../members/people/stored-user.ts'
import { sessionOf, sessionPrincipal } from '../../members/sessions/authenticate-session.ts'
import type { LiveSession } from '../../members/sessions/session.ts'
import type { Client } from '../clients/client.ts'
import { originOf } from '../clients/unvetted-client.ts'
import type { OAuthDependencies } from '../dependencies.ts'
import { oauthEvent } from '../oauth-event.ts'
import { type Scope, scopeSentences, scopes, writeScope } from '../scope.ts'

/** What an application asks for. */
export interface Asked {
  client: Client
  scope: readonly Scope[]
  /** Empty for all. */
  resources: readonly string[]
}

/** What the page showed, as far as it says so. */
interface Shown {
  scopes: readonly string[] | undefined
  clientName: string | undefined
  user: string | undefined
}

export const consentQuestion = z.object({
  client: z.object({
    client_id: z.string(),
    client_name: z.string(),
    created_by: z.object({ name: z.string() }).nullable().describe('Who registered it, where that is a person'),
    origin: z
      .enum(['administrator', 'document', 'registration'])
      .describe('Who says what it is: an administrator, a document at its client_id, or it itself'),
  }),
  scopes: z.array(
    z.object({
      scope: z.enum(scopes),
      sentence: z.string(),
      held: z.boolean().describe('Whether the person holds this permission; a token permits only what they hold'),
    }),
  ),
  resources: z.array(z.string()).describe('Where alone the token will work; empty for everywhere'),
  user: z.object({ id: z.uuid(), name: z.string(), email: z.string() }),
})

/** A program that holds a person's session must not approve other programs in that person's name. */
export async function requireBrowserSession(request: Request, dependencies: OAuthDependencies): Promise<LiveSession> {
  const { session } = await sessionOf(request, dependencies)
  if (session?.kind === 'browser') return session
  throw new Failure('permission_denied', { message: 'Only a person who is signed in to the console can do this' })
}

/** Throws `consent_outdated` (409) where an approval would grant something else than the person was shown. */
export function requireShown({ client, scope }: Asked, shown: Shown): void {
  if (shown.scopes === undefined) throw missing('scopes')
  const asShown = new Set(shown.scopes)
  if (asShown.size !== scope.length || !scope.every((one) => asShown.has(one))) throw new Failure('consent_outdated')
  if (shown.clientName !== undefined && shown.clientName !== client.name) throw new Failure('consent_outdated')
  if (shown.user === undefined) throw missing('user_id')
}

const missing = (param: string): Failure => new Failure('invalid_parameter', { param, message: `${param} is required` })

export async function consentOf(
  { ledger }: OAuthDependencies,
  { client, scope, resources }: Asked,
  { userId, role }: LiveSession,
): Promise<z.infer<typeof consentQuestion>> {
  const user = await findUser(ledger, userId)
  if (user === null) throw new Failure('not_found', { message: 'There is no such person' })
  const held = permissionsOf([role])
  return {
    client: {
      client_id: client.id,
      client_name: client.name,
      created_by: await creatorOf(ledger, client.createdBy),
      origin: originOf(client),
    },
    scopes: scope.map((one) => ({ scope: one, sentence: scopeSentences[one], held: held.has(one) })),
    resources: [...resources],
    user: { id: user.id, name: user.name, email: user.email },
  }
}

/** The name of who registered an application, where a person did so; tokens name nobody. */
async function creatorOf(ledger: OAuthDependencies['ledger'], createdBy: string): Promise<{ name: string } | null> {
  const [kind, id = ''] = createdBy.split(':')
  const user = kind === 'user' ? await findUser(ledger, id) : null
  return user === null ? null : { name: user.name }
}

/** The event of an answer; `refused` where the person did not agree. */
export async function decisionEvent(
  dependencies: OAuthDependencies,
  type: 'oauth.authorized' | 'oauth.denied',
  { client, scope, resources }: Asked,
  session: LiveSession,
  requestId: string,
  { refused, details }: { refused?: string; details: Record<string, unknown> },
) {
  const teams = await teamsOfUsers(dependencies.ledger, [session.userId])
  const event = await oauthEvent(dependencies, {
    type,
    ...(refused === undefined ? {} : { refused }),
    principal: sessionPrincipal(session),
    requestId,
    clientId: client.id,
    teamId: teams.get(session.userId)?.[0] ?? null,
    details: { client_name: client.name, scope: writeScope(scope), resources, ...details },
  })
  return { ...event, event_attribution: { ...event.event_attribution, session_id: session.id } }
}
