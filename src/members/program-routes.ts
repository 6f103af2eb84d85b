/**
 * The page `{console_url}/authorize-program`, where a person signs in and lets a program in or not (contract section 4).
 *
 * The page never redirects anywhere before its query has been found good, and never without the person's word. Its
 * forms are held to our own origin, and those of a signed-in person to their session by its CSRF token.
 */
import { z } from 'zod'
import { readQuery, validate } from '../api/body.ts'
import { type AnyRoute, route } from '../api/route.ts'
import { Failure } from '../failure.ts'
import { endReplacedSession } from './auth-routes.ts'
import { sessionPrincipal } from './authenticate-session.ts'
import { forgetSession, isFromOurPage, keepSession, ownOrigins, readSessionCookie } from './browser.ts'
import type { MemberDependencies } from './dependencies.ts'
import { readForm } from './form.ts'
import { memberEvent, recordChange } from './member-event.ts'
import { approvalPage, codePage, messagePage, pageResponse, signInPage } from './pages.ts'
import { makeCode, mayGiveToken, outOfBand, type ProgramRequest, programQuery } from './program-code.ts'
import { csrfToken, endSession, findSession, type LiveSession, sameText } from './session.ts'
import { signIn } from './sign-in.ts'
import { requireUser } from './user-routes.ts'

export const programRoutes = (dependencies: MemberDependencies): AnyRoute[] => [
  showProgram(dependencies),
  answerProgram(dependencies),
]

const pagePath = ({ consoleUrl }: MemberDependencies): string =>
  `${new URL(consoleUrl()).pathname.replace(/\/$/, '')}/authorize-program`

const pageRoute = { tag: 'Sessions', access: 'public', reply: z.never(), internal: true } as const

const showProgram = (dependencies: MemberDependencies): AnyRoute =>
  route({
    ...pageRoute,
    method: 'GET',
    path: pagePath(dependencies),
    summary: 'Asks a person whether a program may have a session or a token',
    handle: (_call, request) =>
      orPage(async () => {
        const asked = readAsked(request)
        const signedIn = await browserSession(request, dependencies)
        return signedIn === null ? pageResponse(signInPage(null)) : await ask(dependencies, asked, signedIn)
      }),
  })

const answerProgram = (dependencies: MemberDependencies): AnyRoute =>
  route({
    ...pageRoute,
    method: 'POST',
    path: pagePath(dependencies),
    summary: 'Takes the sign-in and the answer of that person',
    handle: ({ requestId }, request) =>
      orPage(async () => {
        const asked = readAsked(request)
        const { baseUrl, consoleUrl } = dependencies
        if (!isFromOurPage(request, ownOrigins(baseUrl(), consoleUrl()))) throw new Failure('csrf_refused')
        const form = await readForm(request)
        if (form.step === 'sign-in') return await signInOnPage(dependencies, request, form, requestId)
        const signedIn = await browserSession(request, dependencies)
        if (signedIn === null) return pageResponse(signInPage('Your session has ended: sign in again', 401))
        if (!sameText(form.csrf_token ?? '', csrfToken(signedIn.secret))) throw new Failure('csrf_refused')
        if (form.step === 'approve') return await approve(dependencies, asked, signedIn.session, requestId)
        if (form.step === 'deny') return deny(asked)
        if (form.step === 'sign-out') return await signOutOnPage(dependencies, request, signedIn.session)
        throw new Failure('invalid_parameter', { param: 'step' })
      }),
  })

interface SignedInBrowser {
  session: LiveSession
  secret: string
}

async function browserSession(request: Request, dependencies: MemberDependencies): Promise<SignedInBrowser | null> {
  const secret = readSessionCookie(request)
  if (secret === null) return null
  const { session } = await findSession({ ...dependencies, secret, kind: 'browser' })
  return session === null ? null : { session, secret }
}

const readAsked = (request: Request): ProgramRequest => validate(programQuery, readQuery(new URL(request.url)))

/** What a person can do nothing about is a page too, and never a redirect. */
async function orPage(respond: () => Promise<Response>): Promise<Response> {
  try {
    return await respond()
  } catch (error) {
    if (!(error instanceof Failure) || error.status >= 500) throw error
    const where = error.param === null ? '' : ` (${error.param})`
    return pageResponse(messagePage('This cannot go on', `${error.message}${where}`, error.status))
  }
}

async function ask(
  dependencies: MemberDependencies,
  asked: ProgramRequest,
  { session, secret }: SignedInBrowser,
): Promise<Response> {
  assertMayGive(asked, session)
  const { email } = await requireUser(dependencies, session.user_id)
  const page = approvalPage({
    program: asked.client_id,
    redirectUri: asked.redirect_uri === outOfBand ? null : asked.redirect_uri,
    tokenName: asked.token_name ?? null,
    person: email,
    csrfToken: csrfToken(secret),
  })
  return pageResponse(page)
}

function assertMayGive({ token_name }: ProgramRequest, { role }: LiveSession): void {
  if (token_name === undefined || mayGiveToken(role)) return
  throw new Failure('permission_denied', {
    message: 'The program asks for an API token, and your role may not make tokens: ask an administrator for one',
  })
}

async function signInOnPage(
  dependencies: MemberDependencies,
  request: Request,
  form: Record<string, string>,
  requestId: string,
): Promise<Response> {
  const { settings, baseUrl, addressOf } = dependencies
  const { email = '', password = '' } = form
  try {
    const { session } = await signIn(dependencies, { email, password, address: addressOf(request), requestId })
    await endReplacedSession(request, dependencies)
    return seeOther(samePage(request), keepSession(session.secret, settings.session_lifetime_seconds, baseUrl()))
  } catch (error) {
    if (!(error instanceof Failure) || error.status >= 500) throw error
    const headers: Record<string, string> = error.retryAfter === null ? {} : { 'retry-after': String(error.retryAfter) }
    return pageResponse({ ...signInPage(error.message, error.status), headers })
  }
}

async function signOutOnPage(
  { ledger, baseUrl }: MemberDependencies,
  request: Request,
  session: LiveSession,
): Promise<Response> {
  await ledger.write([endSession(session.id, session.user_id)])
  return seeOther(samePage(request), forgetSession(baseUrl()))
}

async function approve(
  dependencies: MemberDependencies,
  asked: ProgramRequest,
  session: LiveSession,
  requestId: string,
): Promise<Response> {
  assertMayGive(asked, session)
  const { clock, randomBytes, recorder } = dependencies
  const { code, statements } = makeCode({ request: asked, userId: session.user_id, now: clock.now(), randomBytes })
  const event = await memberEvent(dependencies, {
    type: 'auth.program_approved',
    principal: sessionPrincipal(session),
    requestId,
    sessionId: session.id,
    details: { program: asked.client_id, redirect_uri: asked.redirect_uri, token_name: asked.token_name ?? null },
  })
  await recordChange(recorder, { event, ledger: statements })
  if (asked.redirect_uri === outOfBand) return pageResponse(codePage(code, asked.client_id))
  return seeOther(redirectWith(asked, { code }))
}

const deny = (asked: ProgramRequest): Response =>
  asked.redirect_uri === outOfBand
    ? pageResponse(messagePage('Denied', 'The program gets nothing. You can close this page.'))
    : seeOther(redirectWith(asked, { error: 'access_denied' }))

/** The redirect of RFC 6749 sections 4.1.2 and 4.1.2.1; `state` as it came. */
function redirectWith({ redirect_uri, state }: ProgramRequest, answer: Record<string, string>): string {
  const query = new URLSearchParams(state === undefined ? answer : { ...answer, state })
  return `${redirect_uri}${redirect_uri.includes('?') ? '&' : '?'}${query}`
}

const samePage = (request: Request): string => {
  const { pathname, search } = new URL(request.url)
  return `${pathname}${search}`
}

const seeOther = (location: string, cookie?: string): Response =>
  new Response(null, {
    status: 303,
    headers: { location, 'cache-control': 'no-store', ...(cookie === undefined ? {} : { 'set-cookie': cookie }) },
  })
