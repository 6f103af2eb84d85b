/**
 * `/v1/auth/programs/…`: what the console's page `authorize-program` asks and tells (handbook/people.md). The page
 * shows which program wants in; the person's word becomes a redirect, or a code to type, that is made here and not
 * there.
 *
 * Both calls are a signed-in browser's own: held to our pages and to the session's CSRF token like any write by cookie.
 * A program that has a session already cannot let another one in.
 */
import { Elysia } from 'elysia'
import { z } from 'zod'
import { conventions } from '../../api/conventions.ts'
import { Failure } from '../../failure.ts'
import type { MemberDependencies } from '../dependencies.ts'
import { memberEvent, recordChange } from '../member-event.ts'
import { requireSession } from '../sessions/auth-routes.ts'
import { requireAccount, sessionPrincipal } from '../sessions/authenticate-session.ts'
import type { LiveSession } from '../sessions/session.ts'
import { makeCode, mayGiveToken, outOfBand, type ProgramRequest, programQuery } from './program-code.ts'

export const programRoutes = (dependencies: MemberDependencies) =>
  new Elysia({ name: 'program' })
    .use(conventions)
    .post(
      '/v1/auth/programs/preview',
      async ({ body: asked, request }) => {
        assertMayGive(asked, await requireBrowser(request, dependencies))
        const { client_id: program, redirect_uri, token_name = null } = asked
        return { program, redirect_host: hostOf(redirect_uri), token_name }
      },
      {
        access: 'signed-in',
        body: programQuery,
        response: previewSchema,
        detail: { tags: ['Sessions'], summary: 'Returns what a program asks a signed-in person for' },
      },
    )
    .post(
      '/v1/auth/programs/decision',
      async ({ body: { approve, user_id: shownUser, ...asked }, requestId, request, showsSecretOf }) => {
        const session = await requireBrowser(request, dependencies)
        if (shownUser !== undefined) requireAccount(session, shownUser)
        if (!approve) return answerTo(asked, { error: 'access_denied' })
        assertMayGive(asked, session)
        const code = await approveProgram(dependencies, asked, session, requestId)
        const reply = { ...answerTo(asked, { code }), code: asked.redirect_uri === outOfBand ? code : null }
        showsSecretOf(asked.client_id)
        return reply
      },
      {
        access: 'signed-in',
        body: programQuery.extend({
          approve: z.boolean(),
          user_id: z.string().optional().describe('The account that the page showed; another one is refused'),
        }),
        response: decisionSchema,
        detail: { tags: ['Sessions'], summary: "Records that person's answer" },
      },
    )

const previewSchema = z.object({
  program: z.string().describe('What the program calls itself'),
  redirect_host: z.string().nullable().describe('Where the answer goes, on this computer; null where a code is shown'),
  token_name: z.string().nullable().describe('The name of the API token it asks for; null where it asks to act as you'),
})
export type ProgramPreview = z.infer<typeof previewSchema>

const decisionSchema = z.object({
  redirect_to: z
    .string()
    .nullable()
    .describe('Where the browser goes next, with the answer; null where there is nothing'),
  code: z.string().nullable().describe('The code to type, for a program that cannot listen, once'),
})
export type ProgramDecision = z.infer<typeof decisionSchema>

async function requireBrowser(request: Request, dependencies: MemberDependencies): Promise<LiveSession> {
  const session = await requireSession(request, dependencies)
  if (session.kind === 'browser') return session
  throw new Failure('permission_denied', { message: 'Only a person in a browser can let a program in' })
}

const hostOf = (redirectUri: string): string | null => (redirectUri === outOfBand ? null : new URL(redirectUri).host)

function assertMayGive({ token_name }: ProgramRequest, { role }: LiveSession): void {
  if (token_name === undefined || mayGiveToken(role)) return
  throw new Failure('permission_denied', {
    message: 'The program asks for an API token, and your role may not make tokens: ask an administrator for one',
  })
}

async function approveProgram(
  dependencies: MemberDependencies,
  asked: ProgramRequest,
  session: LiveSession,
  requestId: string,
): Promise<string> {
  const { clock, randomBytes, recorder } = dependencies
  const { code, statements } = makeCode({
    ...{ request: asked, userId: session.userId, identityId: session.identityId },
    now: clock.now(),
    randomBytes,
  })
  const event = await memberEvent(dependencies, {
    type: 'auth.program_approved',
    principal: sessionPrincipal(session),
    requestId,
    sessionId: session.id,
    details: { program: asked.client_id, redirect_uri: asked.redirect_uri, token_name: asked.token_name ?? null },
  })
  await recordChange(recorder, { event, ledger: statements })
  return code
}

/** The redirect of RFC 6749 sections 4.1.2 and 4.1.2.1; `state` as it came. */
function answerTo({ redirect_uri, state }: ProgramRequest, answer: Record<string, string>): ProgramDecision {
  if (redirect_uri === outOfBand) return { redirect_to: null, code: null }
  const query = new URLSearchParams(state === undefined ? answer : { ...answer, state })
  return { redirect_to: `${redirect_uri}${redirect_uri.includes('?') ? '&' : '?'}${query}`, code: null }
}
