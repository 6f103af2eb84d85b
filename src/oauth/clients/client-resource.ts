/** Applications as records: public clients (names of RFC 7591 section 2). */
import { z } from 'zod'
import { resource } from '../../api/resource.ts'
import { nameText } from '../../identity/free-text.ts'
import { redirectUriFault } from '../authorize/redirect-uri.ts'
import { isScope, readScope, scopes, writeScope } from '../scope.ts'

const clientStatuses = ['active', 'deactivated'] as const
export type ClientStatus = (typeof clientStatuses)[number]

export const deviceGrant = 'urn:ietf:params:oauth:grant-type:device_code'

/** All that there are here. */
export const grantTypes = ['authorization_code', 'refresh_token', deviceGrant] as const

export const clientSchema = z.object({
  client_id: z.string(),
  client_name: z.string(),
  redirect_uris: z.array(z.string()),
  scope: z.string().describe('The scopes it may ask for, separated by spaces'),
  grant_types: z.array(z.enum(grantTypes)),
  response_types: z.array(z.literal('code')),
  token_endpoint_auth_method: z.literal('none'),
  client_id_issued_at: z.number().int().describe('Seconds since the epoch'),
  status: z.enum(clientStatuses),
  created_by: z.string(),
  version: z.number().int(),
})
export type ClientRecord = z.infer<typeof clientSchema>

const redirectUri = z.string().superRefine((text, context) => {
  const message = redirectUriFault(text)
  if (message !== null) context.addIssue({ code: 'custom', message })
})

const scopeText = z
  .string()
  .max(1000)
  .refine((text) => readScope(text)?.every(isScope) ?? false, `Name one or more of ${scopes.join(', ')}`)
  .transform((text) => writeScope(readScope(text) ?? []))

const clientGrants = z
  .array(z.enum(grantTypes))
  .refine(
    (types) => types.includes('refresh_token') && types.some((type) => type !== 'refresh_token'),
    `Name refresh_token, and authorization_code or ${deviceGrant}`,
  )
  .transform((types) => grantTypes.filter((type) => types.includes(type)))
  .describe(
    'How it gets tokens: authorization_code, or the device code of RFC 8628; refresh_token is always among them',
  )

/** What a client is by its nature may be said, and only as it is. */
const fixed = {
  response_types: z.tuple([z.literal('code')]).optional(),
  token_endpoint_auth_method: z.literal('none').optional(),
}

const registered = {
  client_name: nameText(100).describe('What people are asked to let in'),
  redirect_uris: z
    .array(redirectUri)
    .min(1)
    .max(20)
    .transform((uris) => [...new Set(uris)])
    .optional()
    .describe('Where people are sent back to, matched exactly; needed for authorization_code'),
  grant_types: clientGrants.optional(),
  scope: scopeText.describe('What it may ask for, such as gateway:invoke'),
}

const chosenId = z
  .string()
  .regex(/^[a-z0-9][a-z0-9-]{1,62}$/, 'Write 2 to 63 small letters, digits and dashes')
  .optional()
  .describe('An id of its own, such as claude-code; without it one is made')

const newClientBody = z.strictObject({ client_id: chosenId, ...registered, ...fixed })
const clientChanges = z.strictObject({ ...z.object(registered).partial().shape, ...fixed })

/** The id of one that brings its own metadata is an address. */
export const clientParams = z.object({ client_id: z.string().max(512) })

export const clientResource = resource({
  name: 'oauth-client',
  one: 'application',
  plural: 'clients',
  path: '/v1/oauth/clients',
  tag: 'OAuth',
  access: { read: 'oauth-clients:read', write: 'oauth-clients:write' },
  params: clientParams,
  about: 'Register applications that act for people by OAuth',
  summaries: {
    list: 'List applications, in the order they were registered',
    get: 'Show one application',
    create: 'Register an application: a public client, which has no secret',
    update: 'Change an application; redirect URIs and scopes that are given replace those it has',
  },
  notes: {
    create: 'it proves itself by PKCE, or is a device that a person lets in by a code',
    update: 'what people approved before is refreshed within the new scope only',
  },
  record: clientSchema,
  create: newClientBody,
  update: clientChanges,
  filters: z.strictObject({ status: z.enum(clientStatuses).describe('Only applications in this state').optional() }),
  columns: ['client_id', 'client_name', 'status', 'scope', 'redirect_uris'],
  flags: {
    client_name: { name: 'name' },
    redirect_uris: { hint: 'URI', commas: true },
    scope: { hint: 'SCOPE', words: true },
    grant_types: { hint: 'GRANT' },
    response_types: null,
    token_endpoint_auth_method: null,
  },
})
