/** The catalog's routes: providers, models, gateways. */
import type { AnyRoute } from '../api/route.ts'
import type { CatalogDependencies } from './catalog/catalog-change.ts'
import { gatewayRoutes } from './catalog/gateway-routes.ts'
import { modelRoutes } from './catalog/model-routes.ts'
import { providerRoutes } from './provider-routes.ts'

export const catalogRoutes = (deps: CatalogDependencies): AnyRoute[] => [
  ...providerRoutes(deps),
  ...modelRoutes(deps),
  ...gatewayRoutes(deps),
]
