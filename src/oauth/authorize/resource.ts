/** The resources a token can be for (RFC 8707; oauth/README.md): the control plane, the gateway, its MCP surface. */

export interface Resources {
  baseUrl: string
  gatewayUrl: string
}

export const knownResources = ({ baseUrl, gatewayUrl }: Resources): string[] => [
  baseUrl,
  gatewayUrl,
  `${gatewayUrl}/mcp`,
]

/**
 * The known resource that a `resource` parameter names, or null. An origin with the slash of its empty path is the same
 * address (RFC 3986 section 6.2.3), and clients that build a URL object send it so.
 */
export function readResource(text: string, known: readonly string[]): string | null {
  const found = known.find((resource) => text === resource || text === `${resource}/`)
  return found ?? null
}
