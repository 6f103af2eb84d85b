/**
 * What a client may read of the merged surface before it connects: a server card, and the catalog that leads to it (MCP
 * extension of SEP-2127, https://github.com/modelcontextprotocol/experimental-ext-server-card, docs/discovery.md). Both
 * are public, so they name the gateway and no server behind it; tools are listed after sign-in only.
 */
import { isIP } from 'node:net'
import { version } from '../version.ts'
import { supportedVersions } from './protocol.ts'

export const serverCardPath = '/mcp/server-card'
export const catalogPath = '/.well-known/ai-catalog.json'
export const serverCardType = 'application/mcp-server-card+json'
export const catalogType = 'application/ai-catalog+json'

const name = 'gatehouse'

/** `gatewayUrl`: the gateway's own address for callers. */
export const serverCard = (gatewayUrl: string) => ({
  $schema: 'https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json',
  name: `${reversed(hostOf(gatewayUrl))}/${name}`,
  version,
  title: 'Gatehouse',
  description: 'The tools, prompts and resources of this organization, governed by its policies',
  remotes: [
    {
      type: 'streamable-http',
      url: `${gatewayUrl}/mcp`,
      supportedProtocolVersions: supportedVersions,
      headers: [
        {
          name: 'Authorization',
          description: 'Bearer and a token of this gateway. Without it, the answer 401 says where to sign in by OAuth',
          isRequired: false,
          isSecret: true,
        },
      ],
    },
  ],
})

export const cardCatalog = (gatewayUrl: string) => ({
  specVersion: '1.0',
  entries: [
    {
      identifier: `urn:air:${hostOf(gatewayUrl)}:mcp:${name}`,
      type: serverCardType,
      url: `${gatewayUrl}${serverCardPath}`,
    },
  ],
})

/** An address of IPv6 has colons, which neither a name nor an identifier may have. */
const hostOf = (gatewayUrl: string): string =>
  new URL(gatewayUrl).hostname.replace(/^\[(.*)\]$/, '$1').replaceAll(':', '-')

/** `com.example.gateway` for `gateway.example.com`. */
const reversed = (host: string): string => (isIP(host) === 0 ? host.split('.').reverse().join('.') : host)
