/** All routes of the OAuth server (oauth/README.md). */
import type { AnyElysia } from 'elysia'
import { authorizeRoutes } from './authorize/authorize-routes.ts'
import { clientRoutes, registrationRoutes } from './clients/client-routes.ts'
import type { OAuthDependencies } from './dependencies.ts'
import { deviceRoutes } from './device/device-routes.ts'
import { metadataRoutes } from './metadata/metadata.ts'
import { tokenRoutes } from './tokens/token-routes.ts'

export const oauthRoutes = (dependencies: OAuthDependencies): AnyElysia[] => [
  clientRoutes(dependencies),
  ...(dependencies.settings.oauth_dynamic_registration === 'allowed' ? [registrationRoutes(dependencies)] : []),
  authorizeRoutes(dependencies),
  deviceRoutes(dependencies),
  tokenRoutes(dependencies),
  metadataRoutes(dependencies),
]
