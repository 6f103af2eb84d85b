import { Failure } from '../../failure.ts'

/** The failure of running requests whose token is revoked. It names the resource and never the secret. */
export const tokenRevoked = (organizationId: string, tokenId: string): Failure =>
  new Failure('invalid_api_token', { message: `vrn:gatehouse:${organizationId}:token/${tokenId} has been revoked` })
