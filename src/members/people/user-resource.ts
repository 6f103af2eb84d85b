/** People as records, and how their e-mail address is written. */

import { z } from 'zod'
import { nameFilter } from '../../api/page.ts'
import { idParams, resource, secret } from '../../api/resource.ts'
import { nameText, noSecret } from '../../identity/free-text.ts'

/** The roles a person can hold; `runtime` is for gateways only. */
export const userRoles = ['owner', 'admin', 'operator', 'auditor', 'member'] as const
export type UserRole = (typeof userRoles)[number]

export const userStatuses = ['active', 'disabled'] as const
export type UserStatus = (typeof userStatuses)[number]

export const userSchema = z.object({
  id: z.uuid(),
  email: z.string(),
  name: z.string(),
  role: z.enum(userRoles),
  status: z.enum(userStatuses),
  has_password: z.boolean().describe('Whether the person can sign in by password'),
  has_second_factor: z.boolean().describe('Whether signing in by password needs a code of an authenticator app'),
  team_ids: z.array(z.string()),
  created_at: z.iso.datetime(),
  version: z.number().int(),
})
export type User = z.infer<typeof userSchema>

/** Text that people read: trimmed, no control characters. */
export const displayName = nameText(200)

/**
 * Trims and writes all of it in lower case: by RFC 5321 section 2.4 the local part may tell cases apart, but no two
 * people are told apart so, and somebody else's address in capitals must not make a second account.
 */
export function normaliseEmail(text: string): string {
  return text.trim().replace(/[A-Z]/g, (letter) => letter.toLowerCase())
}

/**
 * An e-mail address as a body may hold it; the parsed value is normalised. At most 254 characters (RFC 5321 4.5.3.1).
 */
export const emailSchema = z
  .string()
  .max(254)
  .transform(normaliseEmail)
  .pipe(
    z
      .string()
      .regex(/^[^\s@\p{Cc}]{1,64}@[^\s@\p{Cc}]{1,189}$/u, 'Write an e-mail address: name@example.com')
      .refine(...noSecret),
  )

const fields = {
  email: emailSchema.describe('The address they sign in with'),
  name: displayName.describe('What they are called'),
  role: z.enum(userRoles).describe('What they may do'),
  password: z.string().meta(secret).optional(),
}

const newUserBody = z.strictObject({
  email: fields.email,
  name: fields.name,
  role: fields.role.default('member'),
  password: fields.password,
})

export const userChanges = z.strictObject({
  email: fields.email.optional(),
  name: fields.name.optional(),
  role: fields.role.optional(),
  status: z.enum(userStatuses).describe('Whether they may sign in').optional(),
  password: fields.password,
})

const userFilters = z.strictObject({
  name: nameFilter.describe(
    'Only people with this in their name, their e-mail address or, 8 or more characters, their id',
  ),
  role: z.enum(userRoles).describe('Only people of this role').optional(),
  status: z.enum(userStatuses).describe('Only people in this state').optional(),
})

export const userResource = resource({
  name: 'user',
  one: 'person',
  plural: 'users',
  path: '/v1/users',
  tag: 'People',
  access: { read: 'members:read', write: 'members:write' },
  params: idParams,
  about: 'Add people and change what they may do',
  summaries: {
    list: 'List people, in the order they were added',
    get: 'Show one person',
    create: 'Add a person',
    update: 'Change a person; a new password ends their sessions, disabling also their tokens',
  },
  notes: { create: 'without a password they cannot sign in until one is set, or they use an invitation' },
  record: userSchema,
  create: newUserBody,
  update: userChanges,
  filters: userFilters,
  columns: ['id', 'email', 'name', 'role', 'status'],
  // A password is typed twice, so its flags are written by hand.
  flags: { password: null },
})
