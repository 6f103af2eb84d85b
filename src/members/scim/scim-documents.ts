/** Users and groups as SCIM writes them (RFC 7643 section 4): what is read of a body, and what is answered. */
import { z } from 'zod'
import { noSecret } from '../../identity/free-text.ts'
import { timestamp } from '../../lib/clock.ts'
import { displayName, emailSchema } from '../people/user-resource.ts'
import { invalidValue } from './scim-error.ts'
import { canonical, type Document, type Shape } from './scim-patch.ts'

export const userSchemaId = 'urn:ietf:params:scim:schemas:core:2.0:User'
export const groupSchemaId = 'urn:ietf:params:scim:schemas:core:2.0:Group'

const nameParts = ['formatted', 'familyName', 'givenName', 'middleName'] as const
const emailParts = ['value', 'type', 'primary', 'display'] as const
const memberParts = ['value', 'display', 'type', '$ref'] as const

/** Attributes of RFC 7643 section 4.1 that say nothing about access. */
const ofNoUse =
  'addresses entitlements honorificprefix honorificsuffix ims locale nickname password phonenumbers photos preferredlanguage profileurl roles timezone title usertype x509certificates'

export const userShape: Shape = {
  single: ['externalId', 'userName', 'displayName', 'active'],
  complex: { name: { many: false, sub: nameParts }, emails: { many: true, sub: emailParts } },
  ignored: new Set(ofNoUse.split(' ')),
}
export const groupShape: Shape = {
  single: ['externalId', 'displayName'],
  complex: { members: { many: true, sub: memberParts } },
  ignored: new Set(),
}

/** Entra writes booleans as text. */
const truth = z.union([
  z.boolean(),
  z
    .string()
    .regex(/^(true|false)$/i, 'Write true or false')
    .transform((text) => text.toLowerCase() === 'true'),
])
const externalId = z
  .string()
  .min(1)
  .max(256)
  .refine((text) => text.isWellFormed() && !/\p{Cc}/u.test(text), 'An id must not hold control characters')
  .refine(...noSecret)
  .optional()
const part = z.string().max(200).optional()
const isRecord = (value: unknown): value is Document =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const members = (names: readonly string[]) => (value: unknown) => (isRecord(value) ? canonical(value, names) : value)

/** Okta sends an address that a person does not have as an item without a value. */
const assignedEmails = (emails: unknown) =>
  Array.isArray(emails)
    ? emails.map(members(emailParts)).filter((email) => !(isRecord(email) && email.value === undefined))
    : emails

const userDocument = z.object({
  externalId,
  userName: displayName,
  displayName: displayName.optional(),
  name: z
    .preprocess(members(nameParts), z.object(Object.fromEntries(nameParts.map((name) => [name, part]))))
    .optional(),
  emails: z.preprocess(
    assignedEmails,
    z
      .array(z.object({ value: emailSchema, type: part, primary: truth.optional(), display: part }))
      .max(20)
      .default([]),
  ),
  active: truth.optional(),
})
export type UserDocument = z.infer<typeof userDocument>

/** A group has no more members than this. */
export const mostMembers = 10_000

const groupDocument = z.object({
  externalId,
  displayName,
  /** Null: the body says nothing about members. */
  members: z
    .array(z.preprocess(members(memberParts), z.object({ value: z.string().max(64) })))
    .max(mostMembers)
    .nullable()
    .default(null),
})
export type GroupDocument = z.infer<typeof groupDocument>

export const readUser = (body: object): UserDocument =>
  read(userDocument, canonical(body, [...userShape.single, ...Object.keys(userShape.complex)]))
export const readGroup = (body: object): GroupDocument =>
  read(groupDocument, canonical(body, [...groupShape.single, ...Object.keys(groupShape.complex)]))

function read<Read>(schema: z.ZodType<Read>, document: Document): Read {
  const result = schema.safeParse(document)
  if (result.success) return result.data
  const [issue] = result.error.issues
  throw invalidValue(`${issue?.path.join('.')}: ${issue?.message}`)
}

/** The address by which the account is known here: the primary one, the first one, or a user name that is one. */
export function emailOf({ emails, userName }: UserDocument): string {
  const listed = emails.find(({ primary }) => primary === true) ?? emails[0]
  if (listed !== undefined) return listed.value
  const named = emailSchema.safeParse(userName)
  if (named.success) return named.data
  throw invalidValue('emails: send an e-mail address, or a userName that is one')
}

export function nameOf({ displayName: shown, name, userName }: UserDocument): string {
  const whole = name?.formatted ?? [name?.givenName, name?.familyName].filter(Boolean).join(' ')
  const spelled = displayName.safeParse(whole)
  return shown ?? (spelled.success ? spelled.data : userName)
}

/** What SCIM alone reads of a user, as it is stored. */
export const attributesOf = ({ displayName, name, emails }: UserDocument): string =>
  JSON.stringify({ displayName, name, emails })

export interface StoredUser {
  userId: string
  userName: string
  externalId: string | null
  attributes: string
  status: 'active' | 'disabled'
  createdAt: number
  updatedAt: number
}

/** A stored user as the document that a PATCH changes. */
export function userDocumentOf({ userName, externalId, attributes, status }: StoredUser): Document {
  const kept = z.looseObject({}).parse(JSON.parse(attributes))
  return { ...(externalId === null ? {} : { externalId }), userName, ...kept, active: status === 'active' }
}

export interface Link {
  id: string
  display: string
}

const metaOf = (
  type: 'User' | 'Group',
  at: string,
  { createdAt, updatedAt }: { createdAt: number; updatedAt: number },
) => ({
  meta: { resourceType: type, created: timestamp(createdAt), lastModified: timestamp(updatedAt), location: at },
})

export const userResource = (row: StoredUser, groups: readonly Link[], base: string): Document => ({
  schemas: [userSchemaId],
  id: row.userId,
  ...userDocumentOf(row),
  groups: groups.map(({ id, display }) => ({ value: id, display, $ref: `${base}/Groups/${id}`, type: 'direct' })),
  ...metaOf('User', `${base}/Users/${row.userId}`, row),
})

export interface StoredGroup {
  teamId: string
  displayName: string
  externalId: string | null
  createdAt: number
  updatedAt: number
  version: number
}

export const groupResource = (row: StoredGroup, people: readonly Link[], base: string): Document => ({
  schemas: [groupSchemaId],
  id: row.teamId,
  ...(row.externalId === null ? {} : { externalId: row.externalId }),
  displayName: row.displayName,
  members: people.map(({ id, display }) => ({ value: id, display, $ref: `${base}/Users/${id}`, type: 'User' })),
  ...metaOf('Group', `${base}/Groups/${row.teamId}`, row),
})
