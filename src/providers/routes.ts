/** The catalog's routes: providers, presets, models, gateways. */
import type { AnyElysia } from 'elysia'
import { cacheRoutes } from './catalog/cache-routes.ts'
import type { CatalogDependencies } from './catalog/catalog-change.ts'
import { gatewayRoutes } from './catalog/gateway-routes.ts'
import { modelRoutes } from './catalog/model-routes.ts'
import { presetRoutes } from './presets/preset-routes.ts'
import { providerRoutes } from './provider-routes.ts'
import { trialRoutes } from './trial/trial-routes.ts'

export const catalogRoutes = (deps: CatalogDependencies): AnyElysia[] => [
  providerRoutes(deps),
  presetRoutes(),
  trialRoutes(deps),
  modelRoutes(deps),
  gatewayRoutes(deps),
  cacheRoutes(deps),
]
