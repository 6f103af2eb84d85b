/** `/v1/users`: the people of the organization. */
import type { z } from 'zod'
import { requireVersion } from '../../api/entity-tag.ts'
import { recordPage } from '../../api/page.ts'
import { resourceRoutes } from '../../api/resource-routes.ts'
import { Failure } from '../../failure.ts'
import type { Principal } from '../../identity/principal.ts'
import type { MemberDependencies } from '../dependencies.ts'
import { changesOf, memberEvent, recordChange } from '../member-event.ts'
import { revokeTokensOf } from '../revoke-tokens.ts'
import { endSetupLinks } from '../sessions/setup-link.ts'
import { newPasswordHash } from '../sessions/sign-in.ts'
import { requireVisibleUser, visibleUsers } from '../visibility.ts'
import {
  addUser,
  changeUser,
  findUser,
  findUserByEmail,
  hasOtherOwner,
  listUsers,
  losesOwner,
  teamsOfUsers,
} from './stored-user.ts'
import { assertMayChange, type UserRow, userRecord } from './user.ts'
import { type User, type userChanges, userResource } from './user-resource.ts'

export const userRoutes = (dependencies: MemberDependencies) => {
  const { ledger, recorder, clock, newId, delegations } = dependencies
  return resourceRoutes(userResource, {
    list({ name, role, status, ...page }, { principal }) {
      const filters = { name, role, status }
      return recordPage(page, {
        filters,
        read: (start, count) => listUsers(ledger, { ...filters, visible: visibleUsers(principal), start, count }),
        async show(rows) {
          const ids = rows.map(({ id }) => id)
          const teams = await teamsOfUsers(ledger, ids)
          return rows.map((row) => userRecord(row, teams.get(row.id) ?? []))
        },
      })
    },
    async get(id, { principal }) {
      await requireVisibleUser(ledger, principal, id)
      return await readUser(dependencies, id)
    },
    async create({ email, name, role, password }, { principal, requestId }) {
      assertMayChange(principal, null, role)
      const passwordHash = password === undefined ? null : await newPasswordHash(password, email, 'password')
      const [id, createdAt] = [newId(), clock.now()]
      const user = { id, email, name, role, status: 'active' as const, passwordHash, createdAt }
      const event = await memberEvent(dependencies, {
        type: 'member.created',
        principal,
        requestId,
        details: { user_id: id, role, has_password: passwordHash !== null },
      })
      await recordChange(recorder, { event, ledger: addUser(user) }, emailTaken)
      return await readUser(dependencies, id)
    },
    async update(id, body, { principal, requestId, headers }) {
      const before = await requireUser(dependencies, id)
      requireVersion(headers, before.version)
      assertMayChange(principal, before.role, body.role ?? before.role)
      if (body.password !== undefined) assertNotOwnPassword(principal, id)
      const after = await changed(before, body)
      const changes = changesOf(before, after, ['name', 'role', 'status'])
      const newPassword = body.password !== undefined
      const newEmail = after.email !== before.email
      if (Object.keys(changes).length > 0 || newPassword || newEmail) {
        if (newEmail) await requireFreeEmail(dependencies, after)
        if (losesOwner(before, after)) await requireOtherOwner(dependencies, id)
        const event = await memberEvent(dependencies, {
          type: 'member.updated',
          principal,
          requestId,
          details: {
            user_id: id,
            changes: {
              ...changes,
              ...(newEmail ? { email: 'replaced' } : {}),
              ...(newPassword ? { password: 'replaced' } : {}),
            },
          },
        })
        const marks = delegations.mark(id, clock.now(), after.status === 'disabled')
        const ended = newPassword ? [endSetupLinks(id)] : []
        const ledger = [...changeUser(before, after, newPassword), ...ended, ...marks]
        await recordChange(recorder, { event, ledger })
      }
      const actor = { principal, requestId }
      if (after.status === 'disabled') await revokeTokensOf(dependencies, actor, { userId: id })
      await delegations.follow(actor, id)
      return await readUser(dependencies, id)
    },
  })
}

/** One's own password is changed by who knows the present one: a stolen session must not become a lasting one. */
export function assertNotOwnPassword({ kind, userId }: Principal, id: string): void {
  if (kind !== 'session' || userId !== id) return
  throw new Failure('permission_denied', {
    param: 'password',
    message: 'Change your own password by POST /v1/auth/password, with the present one',
  })
}

async function changed(before: UserRow, changes: z.infer<typeof userChanges>): Promise<UserRow> {
  const { password, email = before.email, name = before.name, role = before.role, status = before.status } = changes
  const passwordHash = password === undefined ? before.passwordHash : await newPasswordHash(password, email, 'password')
  return { ...before, email, name, role, status, passwordHash }
}

const emailTaken = { message: 'Somebody has this e-mail address already', param: 'email' }

async function requireFreeEmail({ ledger }: MemberDependencies, { id, email }: UserRow): Promise<void> {
  const holder = await findUserByEmail(ledger, email)
  if (holder !== null && holder.id !== id) throw new Failure('conflict', emailTaken)
}

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

/** The record of a person as the API shows it. Throws `not_found`. */
export async function readUser(dependencies: Pick<MemberDependencies, 'ledger'>, id: string): Promise<User> {
  const row = await requireUser(dependencies, id)
  const teams = await teamsOfUsers(dependencies.ledger, [id])
  return userRecord(row, teams.get(id) ?? [])
}
