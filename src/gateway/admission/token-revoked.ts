import { Failure } from '../../failure.ts'

/** What the callers of a token are told whose running requests end with it; names the resource, never the secret. */
export const tokenRevoked = (organizationId: string, tokenId: string): Failure =>
  new Failure('invalid_api_token', { message: `vrn:gatehouse:${organizationId}:token/${tokenId} has been revoked` })
