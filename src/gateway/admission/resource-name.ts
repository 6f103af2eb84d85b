import type { GatewayStatus } from '../../fleet/protocol/worker.ts'

/** The resource name that callers are shown for a token: `vrn:gatehouse:<organization id>:token/<id>`. */
export const resourceName = (tokenId: string, { organizationId }: Pick<GatewayStatus, 'organizationId'>): string =>
  `vrn:gatehouse:${organizationId}:token/${tokenId}`
