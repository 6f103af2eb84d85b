import { identityProviderResource } from '../../../../src/members/identity-providers/identity-provider-resource.ts'
import { kindOf } from '../kind.ts'

/** The issuer stays, because people are known by it. */
export const identityProviders = kindOf(identityProviderResource)
