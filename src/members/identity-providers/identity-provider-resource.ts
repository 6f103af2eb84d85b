/** Identity providers as records: where people sign in by OpenID Connect, and what their groups make of them. */
import { z } from 'zod'
import { idParams, refersTo, resource, secret } from '../../api/resource.ts'
import { nameText } from '../../identity/free-text.ts'
import { userRoles } from '../people/user-resource.ts'

const issuer = z
  .string()
  .max(512)
  .refine((text) => issuerFault(text) === null, { error: ({ input }) => issuerFault(String(input)) ?? '' })
  .describe('The issuer, exactly as the provider writes it: its discovery document is below it')

const loopback = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/

/** Whether an issuer is on this host, where no TLS is needed. */
export const isOnThisHost = (text: string): boolean => loopback.test(new URL(text).hostname)

/** Issuers of Entra that stand for many tenants: a token of any tenant would pass. */
const manyTenants = /^https:\/\/login\.microsoftonline\.com\/(common|organizations|consumers|\{)/i

/** What is wrong with an issuer (OpenID Connect Discovery 1.0 section 2), in words, or null. */
function issuerFault(text: string): string | null {
  const url = URL.parse(text)
  if (url === null || !['http:', 'https:'].includes(url.protocol)) return 'Write an address that begins with https://'
  if (url.protocol === 'http:' && !loopback.test(url.hostname)) return 'An issuer on another host needs https://'
  if (url.username !== '' || url.password !== '') return 'Leave user and password out'
  if (/[?#]/.test(text)) return 'Leave query and fragment out'
  if (text.includes('/.well-known/')) return 'Write the issuer, without /.well-known/ and what follows it'
  return manyTenants.test(text) ? "Write the issuer of your own tenant, with the tenant's id" : null
}

const domain = z
  .string()
  .max(253)
  .transform((text) => text.toLowerCase())
  .pipe(z.string().regex(/^[a-z0-9-]+(\.[a-z0-9-]+)+$/, 'Write a domain: example.com'))

const groupRule = z.strictObject({
  group: z.string().min(1).max(256).describe('The group, as the provider writes it'),
  role: z.enum(userRoles).describe('The role of its people').optional(),
  team_ids: z
    .array(z.uuid().meta(refersTo('/v1/teams')))
    .max(64)
    .describe('The teams that its people are in')
    .default([]),
})

const seconds = (least: number, most: number) => z.number().int().min(least).max(most)

/** OpenID Connect Core 1.0 section 3.1.2.1: a request without `openid` is none of OpenID Connect. */
const scope = z
  .string()
  .max(500)
  .regex(/^[\x21\x23-\x5b\x5d-\x7e]+( [\x21\x23-\x5b\x5d-\x7e]+)*$/, 'Separate scopes by one blank')
  .refine((text) => text.split(' ').includes('openid'), 'One of the scopes is openid')

const fields = {
  name: nameText(64).describe('What stands on its button'),
  client_id: z.string().min(1).max(512).describe('The client that is registered at the provider'),
  client_secret: z.string().min(1).max(4096).describe("The client's secret; stored encrypted").meta(secret),
  scope: scope.describe('What is asked for; with offline_access most providers can be asked again later'),
  domains: z
    .array(domain)
    .max(64)
    .describe('Only people of these domains may sign in: by verified e-mail address, at Google by hosted domain'),
  accept_unverified_email: z
    .boolean()
    .describe('Take an address for verified where the provider does not say, as Entra does not'),
  groups_claim: z.string().min(1).max(200).describe('The claim that names groups; a dot leads into an object'),
  groups: z
    .array(groupRule)
    .max(500)
    .describe('What groups give: the first one with a role decides the role, all of them decide the teams'),
  groups_from: z
    .enum(['claim', 'scim'])
    .describe('Where the groups of people come from: the claim, or what the provider sends by SCIM'),
  external_id_claim: z
    .string()
    .min(1)
    .max(200)
    .describe('The claim that SCIM sends as externalId; it must be one that people cannot change'),
  default_role: z
    .enum(userRoles)
    .exclude(['owner'])
    .nullable()
    .describe('The role of people to whom no group gives one; without it they cannot sign in'),
  recheck_seconds: seconds(60, 86_400).describe('How often the provider is asked whether a person still belongs'),
  unchecked_session_seconds: seconds(300, 7 * 86_400).describe(
    'How long a session lives where the provider cannot be asked again, because it gave no refresh token',
  ),
  sign_out_at_provider: z.boolean().describe('Signing out of the console also signs out at the provider'),
  enabled: z.boolean().describe('Whether people may sign in by it; switching it off ends their sessions'),
}

/** What of a record is kept as JSON. */
export const configSchema = z.object({
  scope: fields.scope.default('openid email profile'),
  domains: fields.domains.default([]),
  accept_unverified_email: fields.accept_unverified_email.default(false),
  groups_claim: fields.groups_claim.default('groups'),
  groups: fields.groups.default([]),
  groups_from: fields.groups_from.default('claim'),
  external_id_claim: fields.external_id_claim.default('sub'),
  default_role: fields.default_role.default(null),
  recheck_seconds: fields.recheck_seconds.default(300),
  unchecked_session_seconds: fields.unchecked_session_seconds.default(3600),
  sign_out_at_provider: fields.sign_out_at_provider.default(false),
})
export type ProviderConfig = z.infer<typeof configSchema>

export const newProviderBody = z.strictObject({
  name: fields.name,
  issuer,
  client_id: fields.client_id,
  client_secret: fields.client_secret.optional(),
  ...configSchema.shape,
  enabled: fields.enabled.default(true),
})

const providerChanges = z.strictObject({
  name: fields.name.optional(),
  client_id: fields.client_id.optional(),
  client_secret: fields.client_secret.nullable().optional(),
  scope: fields.scope.optional(),
  domains: fields.domains.optional(),
  accept_unverified_email: fields.accept_unverified_email.optional(),
  groups_claim: fields.groups_claim.optional(),
  groups: fields.groups.optional(),
  groups_from: fields.groups_from.optional(),
  external_id_claim: fields.external_id_claim.optional(),
  default_role: fields.default_role.optional(),
  recheck_seconds: fields.recheck_seconds.optional(),
  unchecked_session_seconds: fields.unchecked_session_seconds.optional(),
  sign_out_at_provider: fields.sign_out_at_provider.optional(),
  enabled: fields.enabled.optional(),
})

const providerSchema = z.object({
  id: z.uuid(),
  name: z.string(),
  issuer: z.string(),
  client_id: z.string(),
  has_client_secret: z.boolean(),
  ...z.object(fields).omit({ name: true, client_id: true, client_secret: true }).shape,
  redirect_uri: z.string().describe('What to register at the provider as the redirect URI'),
  created_at: z.iso.datetime(),
  version: z.number().int(),
})
export type IdentityProvider = z.infer<typeof providerSchema>

export const identityProviderResource = resource({
  name: 'identity-provider',
  one: 'identity provider',
  plural: 'identity_providers',
  path: '/v1/identity-providers',
  tag: 'People',
  access: { read: 'members:read', write: 'members:write' },
  params: idParams,
  about: 'Let people sign in by OpenID Connect',
  summaries: {
    list: 'List identity providers, in the order they were made',
    get: 'Show one identity provider, without its secret',
    create: 'Add an identity provider',
    update: 'Change an identity provider; people are checked anew by what it says then',
    delete: 'Delete an identity provider; the sessions it vouched for end',
  },
  notes: {
    create: 'only an owner may',
    update: 'only an owner may; the issuer stays, because people are known by it; null takes the secret away',
  },
  record: providerSchema,
  create: newProviderBody,
  update: providerChanges,
  columns: ['id', 'name', 'issuer', 'enabled'],
  flags: {
    issuer: { hint: 'URL' },
    scope: { words: true },
    groups: { json: '{"group": "staff", "role": "member"}' },
  },
})
