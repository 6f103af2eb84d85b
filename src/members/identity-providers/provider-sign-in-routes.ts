/**
 * `/v1/auth/identity-providers` and `/v1/auth/callback/{id}`: how a browser goes to a provider and comes back.
 *
 *   1. Our page asks for the address to go to, and gets the secrets of its attempt as a sealed cookie.
 *   2. The provider sends the browser to the callback, an address of this provider's own. The answer counts in the
 *      browser of the attempt only; its code is exchanged, the person taken in, and a session of a new secret begins.
 *   3. The browser goes on to the page of the console that it came from, and nowhere else.
 */
import { Elysia } from 'elysia'
import { z } from 'zod'
import { conventions } from '../../api/conventions.ts'
import { Failure } from '../../failure.ts'
import { anonymous } from '../../identity/principal.ts'
import type { MemberDependencies } from '../dependencies.ts'
import { memberEvent, recordChange } from '../member-event.ts'
import { addressKey, addressRule, countAttempt, forgiveAttempt } from '../people/throttle.ts'
import { assertMayChange } from '../people/user.ts'
import { userSchema } from '../people/user-resource.ts'
import { readUser, requireUser } from '../people/user-routes.ts'
import { cookieOf, endReplacedSession, refuseForeignPage, requireSession } from '../sessions/auth-routes.ts'
import { sessionOf } from '../sessions/authenticate-session.ts'
import { provePassword, startBrowserSession } from '../sessions/sign-in.ts'
import { redirectUriOf } from './identity-provider-routes.ts'
import { ProviderRefusal, type RefusalReason } from './provider-refusal.ts'
import { type Attempt, returnPath, signInAttempts } from './sign-in-attempt.ts'
import { enabledProviders, removeIdentities, requireEnabled } from './stored-identity-provider.ts'
import { takeIn } from './take-in.ts'

const beginBody = z.strictObject({
  identity_provider_id: z.uuid(),
  return_to: returnPath.default('/').describe('Where the console goes on afterwards'),
})
const params = z.object({ id: z.uuid() })
const begun = z.object({ redirect_to: z.string().describe('Where the browser goes: the provider') })

const waysSchema = z.object({
  identity_providers: z.array(z.object({ id: z.uuid(), name: z.string() })),
  passwords: z.enum(['everybody', 'break_glass']).describe('Who may sign in by password'),
})
export type SignInWays = z.infer<typeof waysSchema>

export const providerSignInRoutes = (dependencies: MemberDependencies) =>
  new Elysia({ name: 'provider-sign-in' })
    .use(conventions)
    .get(
      '/v1/auth/identity-providers',
      async () => ({
        identity_providers: await enabledProviders(dependencies.ledger),
        passwords:
          dependencies.settings.break_glass_owner === undefined ? ('everybody' as const) : ('break_glass' as const),
      }),
      {
        access: 'public',
        failures: [503],
        response: waysSchema,
        detail: { tags: ['Sessions'], summary: 'Lists the ways to sign in' },
      },
    )
    .post(
      '/v1/auth/identity-providers/begin',
      async ({ body: { identity_provider_id: id, return_to }, request, set }) => {
        refuseForeignPage(request, dependencies)
        const { redirectTo, cookie } = await begin(dependencies, { providerId: id, returnTo: return_to, linkTo: null })
        set.headers['set-cookie'] = cookie
        return { redirect_to: redirectTo }
      },
      {
        access: 'public',
        failures: [403, 404, 503],
        body: beginBody,
        response: begun,
        detail: { tags: ['Sessions'], summary: 'Begins a sign-in at an identity provider, from the sign-in page' },
      },
    )
    .post(
      '/v1/auth/identity-providers/link',
      async ({ body: { identity_provider_id: id, return_to, current_password: password }, request, set }) => {
        const { kind, userId } = await requireSession(request, dependencies)
        if (kind !== 'browser') {
          throw new Failure('permission_denied', { message: 'Only a person in a browser can link an account' })
        }
        // A stolen session must not become a lasting one.
        const address = dependencies.addressOf(request)
        await provePassword(dependencies, await requireUser(dependencies, userId), { password, address })
        const asked = { providerId: id, returnTo: return_to, linkTo: userId }
        const { redirectTo, cookie } = await begin(dependencies, asked)
        set.headers['set-cookie'] = cookie
        return { redirect_to: redirectTo }
      },
      {
        access: 'signed-in',
        failures: [404, 429, 503],
        body: beginBody.extend({ current_password: z.string().max(1024) }),
        response: begun,
        detail: {
          tags: ['Sessions'],
          summary: 'Begins a sign-in whose identity is linked to the account of the person who asks',
        },
      },
    )
    .delete(
      '/v1/users/:id/identities',
      async ({ principal, params: { id }, requestId }) => {
        const user = await requireUser(dependencies, id)
        assertMayChange(principal, user.role, user.role)
        const event = await memberEvent(dependencies, {
          type: 'member.updated',
          principal,
          requestId,
          details: { user_id: id, changes: { identities: 'removed' } },
        })
        await recordChange(dependencies.recorder, { event, ledger: removeIdentities(id) })
        return await readUser(dependencies, id)
      },
      {
        access: 'members:write',
        failures: [409],
        params,
        response: userSchema,
        detail: {
          tags: ['People'],
          summary: "Unlinks a person's account from all identity providers; the sessions that came of them end",
        },
      },
    )
    .get(
      '/v1/auth/callback/:id',
      async ({ params: { id }, request, requestId }) => await answerCallback(dependencies, id, request, requestId),
      {
        access: 'public',
        internal: true,
        params,
        detail: { tags: ['Sessions'], summary: 'Takes a provider’s answer' },
      },
    )

async function begin(
  dependencies: MemberDependencies,
  asked: Pick<Attempt, 'providerId' | 'returnTo' | 'linkTo'>,
): Promise<{ redirectTo: string; cookie: string }> {
  const provider = await requireEnabled(dependencies, { id: asked.providerId })
  const { attempt, cookie } = signInAttempts.begin(dependencies, asked)
  try {
    const redirectUri = redirectUriOf(dependencies, provider.id)
    return { redirectTo: await dependencies.relyingParty.authorizationUrl(provider, redirectUri, attempt), cookie }
  } catch (error) {
    if (!(error instanceof ProviderRefusal)) throw error
    throw new Failure('dependency_unavailable', {
      message: `The identity provider ${provider.name} cannot be used now: ${error.message}`,
      cause: error,
    })
  }
}

/** Always a redirect into the console, whether somebody came in or not. */
async function answerCallback(
  dependencies: MemberDependencies,
  providerId: string,
  request: Request,
  requestId: string,
): Promise<Response> {
  const headers = new Headers({ 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' })
  headers.append('set-cookie', signInAttempts.forget(dependencies))
  let attempt: Attempt | null = null
  const key = addressKey(dependencies.addressOf(request))
  try {
    await countAnswer(dependencies, key)
    // What the provider sent, at the address that it was told: the Host header has no say.
    const answer = new URL(redirectUriOf(dependencies, providerId) + new URL(request.url).search)
    attempt = signInAttempts.of(
      dependencies,
      request,
      answer.searchParams.get('state'),
      (kept) => kept.providerId === providerId,
    )
    headers.append('set-cookie', await comeIn(dependencies, attempt, { answer, request, requestId }))
    headers.set('location', consoleAddress(dependencies, attempt.returnTo, null))
    await forgiveAttempt(dependencies.ledger, { account: null, address: key })
  } catch (thrown) {
    const error = asRefusal(thrown)
    if (error.reason !== 'throttled') await recordRefusal(dependencies, { providerId, request, requestId }, error)
    headers.set('location', consoleAddress(dependencies, attempt?.returnTo ?? '/', error.reason))
  }
  return new Response(null, { status: 303, headers })
}

/** Of two answers that make or change one account at the same moment, one is to be tried again. */
function asRefusal(thrown: unknown): ProviderRefusal {
  if (thrown instanceof ProviderRefusal) return thrown
  if (!(thrown instanceof Failure) || thrown.code !== 'conflict') throw thrown
  return new ProviderRefusal('attempt_missing', 'The account changed at the same moment', { cause: thrown })
}

/** Each answer costs a call to the provider and an event: an address has as many as it has wrong passwords. */
async function countAnswer({ ledger, clock }: MemberDependencies, key: string): Promise<void> {
  try {
    await countAttempt(ledger, key, addressRule, clock.now())
  } catch (error) {
    if (!(error instanceof Failure) || error.code !== 'sign_in_throttled') throw error
    throw new ProviderRefusal('throttled', 'Too many attempts came from this address', { cause: error })
  }
}

interface Answer {
  answer: URL
  request: Request
  requestId: string
}

/** Gives the cookie of a new session. */
async function comeIn(
  dependencies: MemberDependencies,
  attempt: Attempt,
  { answer, request, requestId }: Answer,
): Promise<string> {
  const provider = await requireEnabled(dependencies, { id: attempt.providerId }).catch((error: unknown) => {
    if (error instanceof Failure && error.code === 'not_found') {
      throw new ProviderRefusal('attempt_missing', 'The identity provider was switched off meanwhile')
    }
    throw error
  })
  if (attempt.linkTo !== null) await requireSameSession(dependencies, request, attempt.linkTo)
  const vouched = await dependencies.relyingParty.redeem(provider, answer, attempt)
  const { user, identityId } = await takeIn(dependencies, provider, { vouched, linkTo: attempt.linkTo, requestId })
  const from = { address: dependencies.addressOf(request), requestId }
  const session = await startBrowserSession(dependencies, user, from, {
    identity: { id: identityId, providerId: provider.id },
  })
  await endReplacedSession(request, dependencies)
  return cookieOf(dependencies, session)
}

/** An identity is linked to the account that asked, while that is still the one that is signed in here. */
async function requireSameSession(dependencies: MemberDependencies, request: Request, userId: string): Promise<void> {
  const { session } = await sessionOf(request, dependencies)
  if (session?.userId === userId) return
  throw new ProviderRefusal('attempt_missing', 'Another account is signed in than the one that asked')
}

/** An address below the console's own; the reason of a refusal stands in its query. */
function consoleAddress({ consoleUrl }: MemberDependencies, path: string, refused: RefusalReason | null): string {
  const console = new URL(consoleUrl())
  const wanted = URL.parse(`${consoleUrl()}${path}`)
  const below = `${console.pathname.replace(/\/$/, '')}/`
  const isOurs = wanted !== null && wanted.origin === console.origin && wanted.pathname.startsWith(below)
  const address = isOurs ? wanted : new URL(`${consoleUrl()}/`)
  if (refused !== null) address.searchParams.set('sign_in_refused', refused)
  return address.href
}

async function recordRefusal(
  dependencies: MemberDependencies,
  { providerId, request, requestId }: { providerId: string; request: Request; requestId: string },
  { reason, message }: ProviderRefusal,
): Promise<void> {
  const event = await memberEvent(dependencies, {
    type: 'auth.refused',
    refused: `identity.${reason}`,
    principal: anonymous,
    requestId,
    details: { address: dependencies.addressOf(request), identity_provider_id: providerId, fault: message },
  })
  await dependencies.recorder.append([event])
}
