/** All routes of people: users, teams, sign-in, sessions, programs. */
import type { AnyElysia } from 'elysia'
import { accessReviewRoutes } from './access-review/access-review-routes.ts'
import type { MemberDependencies } from './dependencies.ts'
import { identityProviderRoutes } from './identity-providers/identity-provider-routes.ts'
import { providerSignInRoutes } from './identity-providers/provider-sign-in-routes.ts'
import { userRoutes } from './people/user-routes.ts'
import { exchangeRoutes } from './programs/exchange-routes.ts'
import { programRoutes } from './programs/program-routes.ts'
import { scimRoutes } from './scim/scim-routes.ts'
import { scimTokenRoutes } from './scim/scim-token-routes.ts'
import { authRoutes } from './sessions/auth-routes.ts'
import { invitationRoutes } from './sessions/invitation-routes.ts'
import { secondFactorRoutes } from './sessions/second-factor-routes.ts'
import { sessionRoutes } from './sessions/session-routes.ts'
import { setupLinkRoutes } from './sessions/setup-link-routes.ts'
import { membershipRoutes } from './teams/membership-routes.ts'
import { teamRoutes } from './teams/team-routes.ts'

export const memberRoutes = (dependencies: MemberDependencies): AnyElysia[] => [
  userRoutes(dependencies),
  teamRoutes(dependencies),
  membershipRoutes(dependencies),
  accessReviewRoutes(dependencies),
  identityProviderRoutes(dependencies),
  providerSignInRoutes(dependencies),
  scimTokenRoutes(dependencies),
  scimRoutes(dependencies),
  authRoutes(dependencies),
  setupLinkRoutes(dependencies),
  invitationRoutes(dependencies),
  sessionRoutes(dependencies),
  secondFactorRoutes(dependencies),
  programRoutes(dependencies),
  exchangeRoutes(dependencies),
]
