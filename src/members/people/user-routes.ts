/** `/v1/users`: the people of the organization. */

import { Elysia } from 'elysia'
import { z } from 'zod'
import { conventions } from '../../api/conventions.ts'
import { requireVersion } from '../../api/entity-tag.ts'
import { cutPage, pageQuery, startOf } from '../../api/page.ts'
import { idParams } from '../../api/resource.ts'
import { Failure } from '../../failure.ts'
import type { Principal } from '../../identity/principal.ts'
import type { MemberDependencies } from '../dependencies.ts'
import { changesOf, memberEvent, recordChange } from '../member-event.ts'
import { revokeTokensOf } from '../revoke-tokens.ts'
import { endSetupLinks } from '../sessions/setup-link.ts'
import { newPasswordHash } from '../sessions/sign-in.ts'
import { requireVisibleUser, visibleUsers } from '../visibility.ts'
import { addUser, changeUser, findUser, hasOtherOwner, listUsers, losesOwner, teamsOfUsers } from './stored-user.ts'
import { assertMayChange, type UserRow, userRecord } from './user.ts'
import { newUserBody, type User, userChanges, userFilters, userSchema } from './user-resource.ts'

export const userRoutes = (dependencies: MemberDependencies) => {
  const { ledger } = dependencies
  return new Elysia({ name: 'user' })
    .use(conventions)
    .get(
      '/v1/users',
      async ({ principal, query: { role, status, limit, cursor } }) => {
        const filters = { role, status }
        const start = startOf(cursor, filters) ?? ''
        const found = await listUsers(ledger, { ...filters, visible: visibleUsers(principal), start, count: limit + 1 })
        const { rows, next_cursor } = cutPage(found, limit, filters)
        const teams = await teamsOfUsers(
          ledger,
          rows.map(({ id }) => id),
        )
        return { users: rows.map((row) => userRecord(row, teams.get(row.id) ?? [])), next_cursor }
      },
      {
        access: 'members:read',
        query: userFilters.extend(pageQuery),
        response: z.object({ users: z.array(userSchema), next_cursor: z.string().nullable() }),
        detail: { tags: ['People'], summary: 'Lists people, in the order they were added' },
      },
    )
    .post(
      '/v1/users',
      async ({ principal, body: { email, name, role, password }, requestId, status }) => {
        assertMayChange(principal, null, role)
        const passwordHash = password === undefined ? null : await newPasswordHash(password, email, 'password')
        const [id, createdAt] = [dependencies.newId(), dependencies.clock.now()]
        const user = { id, email, name, role, status: 'active' as const, passwordHash, createdAt }
        const event = await memberEvent(dependencies, {
          type: 'member.created',
          principal,
          requestId,
          details: { user_id: id, role, has_password: passwordHash !== null },
        })
        await recordChange(dependencies.recorder, { event, ledger: addUser(user) }, emailTaken)
        return status(201, await answer(dependencies, id))
      },
      {
        access: 'members:write',
        body: newUserBody,
        versioned: true,
        response: { 201: userSchema },
        detail: { tags: ['People'], summary: 'Adds a person; without a password they cannot sign in until one is set' },
      },
    )
    .get(
      '/v1/users/:id',
      async ({ principal, params: { id } }) => {
        await requireVisibleUser(dependencies.ledger, principal, id)
        return await answer(dependencies, id)
      },
      {
        access: 'members:read',
        params: idParams,
        versioned: true,
        response: userSchema,
        detail: { tags: ['People'], summary: 'One person' },
      },
    )
    .patch(
      '/v1/users/:id',
      async ({ principal, params: { id }, body, requestId, request: { headers } }) => {
        const before = await requireUser(dependencies, id)
        requireVersion(headers, before.version)
        assertMayChange(principal, before.role, body.role ?? before.role)
        assertNotOwnPassword(principal, id, body.password)
        const after = await changed(before, body)
        const changes = changesOf(before, after, ['name', 'role', 'status'])
        const newPassword = body.password !== undefined
        if (Object.keys(changes).length > 0 || newPassword) {
          if (losesOwner(before, after)) await requireOtherOwner(dependencies, id)
          const event = await memberEvent(dependencies, {
            type: 'member.updated',
            principal,
            requestId,
            details: { user_id: id, changes: newPassword ? { ...changes, password: 'replaced' } : changes },
          })
          const marks = dependencies.delegations.mark(id, dependencies.clock.now(), after.status === 'disabled')
          const ended = newPassword ? [endSetupLinks(id)] : []
          const ledger = [...changeUser(before, after, newPassword), ...ended, ...marks]
          await recordChange(dependencies.recorder, { event, ledger })
        }
        const actor = { principal, requestId }
        if (after.status === 'disabled') await revokeTokensOf(dependencies, actor, { userId: id })
        await dependencies.delegations.follow(actor, id)
        return await answer(dependencies, id)
      },
      {
        access: 'members:write',
        params: idParams,
        body: userChanges,
        versioned: true,
        ifMatch: true,
        response: userSchema,
        detail: {
          tags: ['People'],
          summary: 'Changes a person; a new password ends their sessions, disabling also their tokens',
        },
      },
    )
}

/** One's own password is changed by who knows the present one: a stolen session must not become a lasting one. */
function assertNotOwnPassword({ kind, userId }: Principal, id: string, password: string | undefined): void {
  if (kind !== 'session' || userId !== id || password === undefined) return
  throw new Failure('permission_denied', {
    param: 'password',
    message: 'Change your own password by POST /v1/auth/password, with the present one',
  })
}

async function changed(before: UserRow, changes: z.infer<typeof userChanges>): Promise<UserRow> {
  const { password, name = before.name, role = before.role, status = before.status } = changes
  const passwordHash =
    password === undefined ? before.passwordHash : await newPasswordHash(password, before.email, 'password')
  return { ...before, name, role, status, passwordHash }
}

const emailTaken = { message: 'Somebody has this e-mail address already', param: 'email' }

async function requireOtherOwner({ ledger }: MemberDependencies, id: string): Promise<void> {
  if (await hasOtherOwner(ledger, id)) return
  throw new Failure('conflict', { message: 'This is the last active owner: make another one first' })
}

/** The person of this id. Throws `not_found`. */
export async function requireUser({ ledger }: Pick<MemberDependencies, 'ledger'>, id: string): Promise<UserRow> {
  const row = await findUser(ledger, id)
  if (row === null) throw new Failure('not_found', { message: 'There is no such person' })
  return row
}

async function answer(dependencies: MemberDependencies, id: string) {
  const record = await readUser(dependencies, id)
  return record
}

/** The record of a person as the API shows it. Throws `not_found`. */
export async function readUser(dependencies: Pick<MemberDependencies, 'ledger'>, id: string): Promise<User> {
  const row = await requireUser(dependencies, id)
  const teams = await teamsOfUsers(dependencies.ledger, [id])
  return userRecord(row, teams.get(id) ?? [])
}
