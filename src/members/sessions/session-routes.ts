/** `/v1/auth/session` and `/v1/auth/sessions`: who is calling, and the sessions a person has. */
import { Elysia } from 'elysia'
import { z } from 'zod'
import { conventions } from '../../api/conventions.ts'
import { Failure } from '../../failure.ts'
import { permissions, roles } from '../../identity/permissions.ts'
import { timestamp } from '../../lib/clock.ts'
import type { MemberDependencies } from '../dependencies.ts'
import { memberEvent, recordChange } from '../member-event.ts'
import { userSchema } from '../people/user-resource.ts'
import { readUser } from '../people/user-routes.ts'
import { requireSession, sessionSchema } from './auth-routes.ts'
import { sessionOf } from './authenticate-session.ts'
import { csrfToken, endSession, listSessions, type SessionRow } from './session.ts'

const callerSchema = z.object({
  kind: z.enum(['session', 'token', 'runtime']),
  user: userSchema.nullable().describe('The person who is signed in; null for an API token'),
  token_id: z.string().nullable(),
  team_id: z.string().nullable(),
  roles: z.array(z.enum(roles)),
  permissions: z.array(z.enum(permissions)),
  session: sessionSchema.nullable(),
  csrf_token: z.string().nullable().describe('For a session by cookie only'),
})

export const sessionRoutes = (dependencies: MemberDependencies) =>
  new Elysia({ name: 'session' })
    .use(conventions)
    .get(
      '/v1/auth/session',
      async ({ principal, request }) => {
        const { session, secret } = await sessionOf(request, dependencies)
        const byCookie = session?.kind === 'browser' && secret !== null
        const { kind, tokenId: token_id, teamId: team_id } = principal
        if (kind === 'anonymous') throw new Failure('missing_api_key')
        return {
          kind,
          user: session === null ? null : await readUser(dependencies, session.userId),
          token_id,
          team_id,
          roles: [...principal.roles],
          permissions: [...principal.permissions],
          session: session === null ? null : sessionRecord(session, session.id),
          csrf_token: byCookie ? csrfToken(secret) : null,
        }
      },
      {
        access: 'signed-in',
        response: callerSchema,
        detail: { tags: ['Sessions'], summary: 'Returns the caller, by session or token, and its permissions' },
      },
    )
    .get(
      '/v1/auth/sessions',
      async ({ request }) => {
        const { id, userId } = await requireSession(request, dependencies)
        const { ledger, settings, clock } = dependencies
        const rows = await listSessions(ledger, userId, settings, clock.now())
        return { sessions: rows.map((row) => sessionRecord(row, id)) }
      },
      {
        access: 'signed-in',
        response: z.object({ sessions: z.array(sessionSchema) }),
        detail: { tags: ['Sessions'], summary: "Lists the caller's own live sessions, newest first" },
      },
    )
    .delete(
      '/v1/auth/sessions/:id',
      async ({ principal, params: { id }, requestId, request }) => {
        const current = await requireSession(request, dependencies)
        const { ledger, settings, clock, recorder } = dependencies
        const own = await listSessions(ledger, current.userId, settings, clock.now())
        const row = own.find((session) => session.id === id)
        if (row === undefined) throw new Failure('not_found', { message: 'You have no such session' })
        const event = await memberEvent(dependencies, {
          type: 'auth.session_ended',
          principal,
          requestId,
          sessionId: current.id,
          details: { session_id: id },
        })
        await recordChange(recorder, { event, ledger: [endSession(id, current.userId)] })
        return sessionRecord(row, current.id)
      },
      {
        access: 'signed-in',
        params: z.object({ id: z.uuid() }),
        response: sessionSchema,
        detail: { tags: ['Sessions'], summary: "Ends one of the caller's own sessions; returns its last record" },
      },
    )

const sessionRecord = (row: SessionRow, currentId: string) => ({
  id: row.id,
  kind: row.kind,
  program: row.program,
  created_at: timestamp(row.createdAt),
  last_used_at: timestamp(row.lastUsedAt),
  expires_at: timestamp(row.expiresAt),
  current: row.id === currentId,
})
