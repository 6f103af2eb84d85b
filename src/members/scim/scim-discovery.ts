/** What this server can do, as clients ask for it (RFC 7643 sections 5 to 7). */
import { groupSchemaId, userSchemaId } from './scim-documents.ts'
import { noSuch } from './scim-error.ts'
import type { Document } from './scim-patch.ts'

/** Records on one page (RFC 7644 section 3.4.2.4). */
export const mostOnPage = 200

export const serviceProviderConfig = (base: string): Document => ({
  schemas: ['urn:ietf:params:scim:schemas:core:2.0:ServiceProviderConfig'],
  patch: { supported: true },
  bulk: { supported: false, maxOperations: 0, maxPayloadSize: 0 },
  filter: { supported: true, maxResults: mostOnPage },
  changePassword: { supported: false },
  sort: { supported: false },
  etag: { supported: false },
  authenticationSchemes: [
    {
      type: 'oauthbearertoken',
      name: 'SCIM token',
      description: 'A token that is made for one identity provider: gatehouse scim-token create',
      primary: true,
    },
  ],
  meta: { resourceType: 'ServiceProviderConfig', location: `${base}/ServiceProviderConfig` },
})

const resourceType = (name: 'User' | 'Group', schema: string, base: string): Document => ({
  schemas: ['urn:ietf:params:scim:schemas:core:2.0:ResourceType'],
  ...{ id: name, name, endpoint: `/${name}s`, schema, schemaExtensions: [] },
  meta: { resourceType: 'ResourceType', location: `${base}/ResourceTypes/${name}` },
})

export const resourceTypes = (base: string): Document[] => [
  resourceType('User', userSchemaId, base),
  resourceType('Group', groupSchemaId, base),
]

interface Options {
  type?: 'string' | 'boolean' | 'complex' | 'reference'
  multiValued?: boolean
  required?: boolean
  caseExact?: boolean
  mutability?: 'readWrite' | 'readOnly' | 'immutable'
  uniqueness?: 'none' | 'server'
  subAttributes?: Document[]
  referenceTypes?: string[]
  canonicalValues?: string[]
}

const attribute = (name: string, description: string, options: Options = {}): Document => ({
  ...{ name, description, type: 'string', multiValued: false, required: false, caseExact: false },
  ...{ mutability: 'readWrite', returned: 'default', uniqueness: 'none' },
  ...options,
})

const externalId = attribute('externalId', "The client's own id", { caseExact: true, uniqueness: 'server' })
const linked = (of: string, mutability: 'readOnly' | 'immutable'): Document[] => [
  attribute('value', 'Its id', { mutability, caseExact: true }),
  attribute('display', 'Its name', { mutability: 'readOnly' }),
  attribute('$ref', 'Its address', { type: 'reference', referenceTypes: [of], mutability, caseExact: true }),
  attribute('type', 'What it is', { mutability: 'readOnly' }),
]

const userAttributes: Document[] = [
  externalId,
  attribute('userName', 'The name at the provider', { required: true, uniqueness: 'server' }),
  attribute('displayName', 'What the person is called'),
  attribute('name', "The parts of the person's name", {
    type: 'complex',
    subAttributes: ['formatted', 'familyName', 'givenName', 'middleName'].map((part) => attribute(part, part)),
  }),
  attribute('emails', 'E-mail addresses; the primary one is that of the account', {
    ...{ type: 'complex', multiValued: true },
    subAttributes: [
      attribute('value', 'The address'),
      attribute('type', 'Its kind', { canonicalValues: ['work', 'home', 'other'] }),
      attribute('primary', 'Whether it is the one to use', { type: 'boolean' }),
      attribute('display', 'How it is shown'),
    ],
  }),
  attribute('active', 'Whether the person has access', { type: 'boolean' }),
  attribute('groups', 'The groups the person is in', {
    ...{ type: 'complex', multiValued: true, mutability: 'readOnly' },
    subAttributes: linked('Group', 'readOnly'),
  }),
]

const groupAttributes: Document[] = [
  externalId,
  attribute('displayName', 'The name of the group and of its team', { required: true, uniqueness: 'server' }),
  attribute('members', 'The users in it', {
    ...{ type: 'complex', multiValued: true },
    subAttributes: linked('User', 'immutable'),
  }),
]

const schema = (id: string, name: string, attributes: Document[], base: string): Document => ({
  ...{ schemas: ['urn:ietf:params:scim:schemas:core:2.0:Schema'], id, name, description: name, attributes },
  meta: { resourceType: 'Schema', location: `${base}/Schemas/${id}` },
})

export const schemas = (base: string): Document[] => [
  schema(userSchemaId, 'User', userAttributes, base),
  schema(groupSchemaId, 'Group', groupAttributes, base),
]

/** The one of this id. Throws 404. */
export function oneOf(documents: readonly Document[], id: string, what: string): Document {
  const found = documents.find((document) => document.id === id)
  if (found === undefined) throw noSuch(what)
  return found
}
