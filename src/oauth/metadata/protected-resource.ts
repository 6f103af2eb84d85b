/** What a protected resource says of itself (RFC 9728): one document for each place where access tokens work. */

export interface ProtectedResource {
  resource: string
  authorization_servers: string[]
  scopes_supported: string[]
  bearer_methods_supported: ['header']
}

/** Where the document of an origin lies, or of its path (section 3.1). */
export const protectedResourcePath = '/.well-known/oauth-protected-resource'

export const protectedResource = (resource: string, baseUrl: string, scopes: readonly string[]): ProtectedResource => ({
  resource,
  authorization_servers: [baseUrl],
  scopes_supported: [...scopes],
  bearer_methods_supported: ['header'],
})

/** The documents that a gateway serves, by path. */
export const gatewayResources = (gatewayUrl: string, baseUrl: string): Readonly<Record<string, ProtectedResource>> => ({
  [protectedResourcePath]: protectedResource(gatewayUrl, baseUrl, ['gateway:invoke']),
  [`${protectedResourcePath}/mcp`]: protectedResource(`${gatewayUrl}/mcp`, baseUrl, ['mcp:invoke']),
})
