/** Checks the address of an MCP server (mcp/README.md), whoever writes the record. */
import { checkedUrl } from '../../providers/base-url.ts'
import { type CatalogDependencies, wrong } from '../../providers/catalog/catalog-change.ts'
import type { ServerCredentials } from '../catalog/server-credentials.ts'
import type { Command, OAuthFields } from '../catalog/server-resource.ts'

type Personal = NonNullable<ServerCredentials['personal']>
type Reachable = Pick<CatalogDependencies, 'plainHttp'>

/** A checked address: exactly one of URL and command, each with its secrets. */
export interface ServerAddress {
  url: string | null
  command: Command | null
  credentials: ServerCredentials
}

/** Throws `invalid_parameter` naming the field. */
export function checkAddress({ plainHttp }: Reachable, { url, command, credentials }: ServerAddress): ServerAddress {
  const { headers, oauth, environment, personal } = credentials
  if (url !== null && command !== null) throw wrong('command', 'Write either url or command')
  if (url === null) {
    if (command === null) throw wrong('url', 'Write where it is reached, or a command that starts it')
    if (Object.keys(headers).length > 0) throw wrong('headers', 'A command has no headers: use environment')
    if (oauth !== null) throw wrong('oauth', 'A command has no access token: use environment')
    if (personal !== undefined) throw wrong('personal', 'A command has no access token: use environment')
    return { url, command, credentials }
  }
  if (Object.keys(environment).length > 0) throw wrong('environment', 'A server with a URL has no environment')
  if (oauth !== null && personal !== undefined) throw wrong('personal', 'Write either oauth or personal')
  if (
    (oauth !== null || personal !== undefined) &&
    Object.keys(headers).some((name) => name.toLowerCase() === 'authorization')
  ) {
    throw wrong('headers', 'The authorization header is the one that oauth or personal brings')
  }
  return {
    url: checkedUrl(url, plainHttp, { param: 'url', instead: 'headers' }),
    command,
    credentials: {
      headers,
      oauth: oauth === null ? null : checkedOAuth(plainHttp, oauth),
      environment,
      ...(personal === undefined ? {} : { personal: checkedPersonal(plainHttp, personal) }),
    },
  }
}

const checkedOAuth = (plainHttp: Reachable['plainHttp'], oauth: OAuthFields): OAuthFields => ({
  ...oauth,
  token_url: checkedUrl(oauth.token_url, plainHttp, { param: 'oauth.token_url', instead: 'client_secret' }),
})

/** A client is known to one authorization server only, so a client comes with the issuer that it was registered at. */
function checkedPersonal(plainHttp: Reachable['plainHttp'], personal: Personal): Personal {
  if (personal.issuer === undefined) {
    if (personal.client_id === undefined) return personal
    throw wrong('personal_oauth.issuer', 'Write the authorization server that the client was registered at')
  }
  checkedUrl(personal.issuer, plainHttp, { param: 'personal_oauth.issuer', instead: 'client_secret' })
  return personal
}
