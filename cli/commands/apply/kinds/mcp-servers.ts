import { z } from 'zod'
import { createMcpServerBody, mcpServerResource } from '../../../../src/mcp/catalog/server-resource.ts'
import { checkAddress } from '../../../../src/mcp/servers/server-address.ts'
import { checkedUrl } from '../../../../src/providers/base-url.ts'
import { kindOf } from '../kind.ts'
import type { Entry } from '../places.ts'

/** With addresses as they are kept. Whether plain HTTP is allowed is a setting of the control plane. */
function normalised(entry: Entry): Entry {
  const { url, oauth } = addresses.parse(entry)
  const anywhere = 'anywhere'
  return {
    ...entry,
    ...(url === undefined ? {} : { url: checkedUrl(url, anywhere, { param: 'url', instead: 'headers' }) }),
    ...(oauth === undefined
      ? {}
      : {
          oauth: {
            ...oauth,
            token_url: checkedUrl(oauth.token_url, anywhere, { param: 'oauth.token_url', instead: 'client_secret' }),
          },
        }),
  }
}

const addresses = z.object({ url: z.string().optional(), oauth: z.looseObject({ token_url: z.string() }).optional() })

/** Throws where the API would not take it. */
function check(body: unknown): void {
  const { url = null, command = null, headers = {}, environment = {}, oauth = null } = createMcpServerBody.parse(body)
  checkAddress({ plainHttp: 'anywhere' }, { url, command, credentials: { headers, environment, oauth } })
}

export const mcpServers = kindOf(mcpServerResource, {
  normalised,
  check,
  secretsWith: ['url', 'command', 'headers', 'oauth', 'environment', 'personal_oauth'],
  // A quarantine ends by a decision of its own, not because a file does not name it.
  kept: ['quarantined'],
})
