/** All routes of people: users, teams, sign-in, sessions, programs. */
import type { AnyRoute } from '../api/route.ts'
import { authRoutes } from './auth-routes.ts'
import type { MemberDependencies } from './dependencies.ts'
import { exchangeRoutes } from './exchange-routes.ts'
import { membershipRoutes } from './membership-routes.ts'
import { programRoutes } from './program-routes.ts'
import { sessionRoutes } from './session-routes.ts'
import { setupLinkRoutes } from './setup-link-routes.ts'
import { teamRoutes } from './team-routes.ts'
import { userRoutes } from './user-routes.ts'

export const memberRoutes = (dependencies: MemberDependencies): AnyRoute[] => [
  ...userRoutes(dependencies),
  ...teamRoutes(dependencies),
  ...membershipRoutes(dependencies),
  ...authRoutes(dependencies),
  ...setupLinkRoutes(dependencies),
  ...sessionRoutes(dependencies),
  ...programRoutes(dependencies),
  ...exchangeRoutes(dependencies),
]
