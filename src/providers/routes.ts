/** The catalog's routes: providers, models, gateways. */
import type { AnyRoute } from '../api/route.ts'
import type { CatalogDependencies } from './catalog-change.ts'
import { gatewayRoutes } from './gateway-routes.ts'
import { modelRoutes } from './model-routes.ts'
import { providerRoutes } from './provider-routes.ts'

export const catalogRoutes = (deps: CatalogDependencies): AnyRoute[] => [
  ...providerRoutes(deps),
  ...modelRoutes(deps),
  ...gatewayRoutes(deps),
]
