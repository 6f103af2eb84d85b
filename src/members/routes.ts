/** All routes of people: users, teams, sign-in, sessions, programs. */
import type { AnyRoute } from '../api/route.ts'
import { Failure } from '../failure.ts'
import { authRoutes } from './auth-routes.ts'
import type { MemberDependencies } from './dependencies.ts'
import { exchangeRoutes } from './exchange-routes.ts'
import { membershipRoutes } from './membership-routes.ts'
import { programRoutes } from './program-routes.ts'
import { sessionRoutes } from './session-routes.ts'
import { setupLinkRoutes } from './setup-link-routes.ts'
import { teamRoutes } from './team-routes.ts'
import { userRoutes } from './user-routes.ts'

export const memberRoutes = (dependencies: MemberDependencies): AnyRoute[] => routes(dependencies).map(forTheUnbound)

/**
 * A token that is bound to a team or a person changes no people, whatever its role: somebody it made would not be bound.
 */
function forTheUnbound(route: AnyRoute): AnyRoute {
  if (route.access !== 'members:write') return route
  return {
    ...route,
    handle(call, request) {
      const { kind, teamId, userId } = call.principal
      if (kind === 'token' && (teamId !== null || userId !== null)) {
        throw new Failure('permission_denied', { message: 'A token bound to a team or a person may not change people' })
      }
      return route.handle(call, request)
    },
  }
}

const routes = (dependencies: MemberDependencies): AnyRoute[] => [
  ...userRoutes(dependencies),
  ...teamRoutes(dependencies),
  ...membershipRoutes(dependencies),
  ...authRoutes(dependencies),
  ...setupLinkRoutes(dependencies),
  ...sessionRoutes(dependencies),
  ...programRoutes(dependencies),
  ...exchangeRoutes(dependencies),
]
