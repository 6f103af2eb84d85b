/** All routes of people's connections (connections/README.md). */
import type { AnyElysia } from 'elysia'
import { connectionRoutes } from './connection-routes.ts'
import { createCurrentTokens } from './current-token.ts'
import type { ConnectionDependencies } from './dependencies.ts'
import { personTokenRoutes } from './person-token-routes.ts'

export const allConnectionRoutes = (dependencies: ConnectionDependencies): AnyElysia[] => [
  connectionRoutes(dependencies),
  personTokenRoutes(dependencies, createCurrentTokens(dependencies)),
]
