import type { Standing } from '../../fleet/protocol/worker.ts'

/** What a caller is told a token by: `vrn:gatehouse:<organization id>:token/<id>`. */
export const resourceName = (tokenId: string, { organizationId }: Pick<Standing, 'organizationId'>): string =>
  `vrn:gatehouse:${organizationId}:token/${tokenId}`
