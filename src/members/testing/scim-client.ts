/** What tests of SCIM share: a token for a provider, and calls by it. */
import type { Received, TemporaryControlPlane } from './temporary-control-plane.ts'

export interface ScimClient {
  providerId: string
  issuer: string
  secret: string
  tokenId: string
  call(method: string, path: string, body?: unknown): Promise<Received>
  /** PATCH with these operations. */
  patch(path: string, ...operations: object[]): Promise<Received>
}

/** Adds the record of a provider, unless an id is given, and makes a SCIM token for it. */
export async function scimClient(
  plane: TemporaryControlPlane,
  issuer: string,
  { id, ...changes }: { id?: string } & Record<string, unknown> = {},
): Promise<ScimClient> {
  const token = plane.adminToken
  const provider = { name: `at ${issuer}`, issuer, client_id: 'gatehouse', ...changes }
  const providerId: string =
    id ?? (await plane.call('POST', '/v1/identity-providers', { body: provider, token })).json.id
  const body = { identity_provider_id: providerId, name: 'provisioning' }
  const made = await plane.call('POST', '/v1/scim-tokens', { body, token })
  if (made.status !== 201) throw new Error(`No token was made: ${made.text}`)
  const { secret, id: tokenId } = made.json
  const headers = { 'content-type': 'application/scim+json' }
  const call = async (method: string, path: string, content?: unknown): Promise<Received> => {
    const received = await plane.call(method, `/scim/v2${path}`, { token: secret, headers, body: content })
    return { ...received, json: received.text === '' ? null : JSON.parse(received.text) }
  }
  const schemas = ['urn:ietf:params:scim:api:messages:2.0:PatchOp']
  return {
    ...{ providerId, issuer, secret, tokenId, call },
    patch: (path, ...operations) => call('PATCH', path, { schemas, Operations: operations }),
  }
}

/** A user as Entra and Okta send one. */
export const newUser = (userName: string, changes: Record<string, unknown> = {}) => ({
  schemas: ['urn:ietf:params:scim:schemas:core:2.0:User'],
  userName,
  externalId: `external-${userName}`,
  name: { givenName: 'Ann', familyName: 'Archer' },
  emails: [{ value: userName, type: 'work', primary: true }],
  active: true,
  ...changes,
})

export const newGroup = (displayName: string, memberIds: readonly string[] = []) => ({
  schemas: ['urn:ietf:params:scim:schemas:core:2.0:Group'],
  displayName,
  members: memberIds.map((value) => ({ value })),
})
