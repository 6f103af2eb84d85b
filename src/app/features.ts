/**
 * The routes of every feature of the control plane's API. Loaded at the first call that is not a gateway's: a start
 * does not wait for their schemas.
 */
import type { AnyElysia } from 'elysia'
import { alertRoutes, firingRoutes } from '../alerts/alert-routes.ts'
import { channelRoutes, channelTestRoute } from '../alerts/channel-routes.ts'
import { recordSearchRoutes } from '../api/together/record-search-routes.ts'
import { togetherRoutes } from '../api/together/together-routes.ts'
import type { Settings } from '../config.ts'
import { allConnectionRoutes } from '../connections/routes.ts'
import { consoleRoutes } from '../console/routes.ts'
import { escalationRoutes } from '../escalations/routes.ts'
import { rollupRebuildRoute } from '../events/rollups/rebuild-route.ts'
import { eventRoutes } from '../events/routes.ts'
import { verifyRoutes } from '../events/verify/verify-route.ts'
import { managedSettingsRoutes } from '../managed-settings/managed-settings-routes.ts'
import { mcpServerRoutes } from '../mcp/catalog/server-routes.ts'
import { mcpOfferRoutes } from '../mcp/offers/offer-routes.ts'
import { memberRoutes } from '../members/routes.ts'
import { sessionOf } from '../members/sessions/authenticate-session.ts'
import { ownerAwaitingSetup } from '../members/sessions/setup-link.ts'
import { oauthRoutes } from '../oauth/routes.ts'
import { findingsRoutes } from '../operation/findings-routes.ts'
import { masterKeyRoutes } from '../operation/master-key-routes.ts'
import { resolveHost } from '../policies/resolve-host.ts'
import { policyRoutes } from '../policies/routes.ts'
import { priceRoutes } from '../providers/prices/price-routes.ts'
import { catalogRoutes } from '../providers/routes.ts'
import { sinkRoutes } from '../sinks/sink-routes.ts'
import { tokenRoutes } from '../tokens/routes.ts'
import { excessRoutes } from '../usage/api/excess-routes.ts'
import { limitRoutes } from '../usage/api/limit-routes.ts'
import { rateRoutes } from '../usage/api/rate-routes.ts'
import { tokenLimitsRoute } from '../usage/api/token-limits-route.ts'
import { usageRoutes } from '../usage/api/usage-routes.ts'
import { budgetValuesRoute } from '../usage/attribution/budget-values-route.ts'
import { budgetUsageRoute } from '../usage/reports/budget-usage-route.ts'
import { costRoutes } from '../usage/reports/cost-routes.ts'
import { reconciliationRoute } from '../usage/reports/reconciliation-route.ts'
import { tokenModelsRoute } from '../usage/reports/token-models-route.ts'
import { workloadIdentityRoutes } from '../workloads/workload-identity-routes.ts'
import { alertDependencies } from './alerts.ts'
import type { Parts } from './control-plane-parts.ts'
import { connectionDependencies, memberDependencies } from './member-dependencies.ts'

/**
 * One plugin for each. `onRuntimeToken` takes the new secret when the runtime token of the gateway here is rotated;
 * `answer` answers a call as the whole API does.
 */
export async function features(
  parts: Parts,
  onRuntimeToken: (secret: string) => void,
  answer: (request: Request) => Promise<Response>,
): Promise<AnyElysia[]> {
  const { shared, settings, workers, addresses, callers, oauth, exports, proof, keyRotation } = parts
  const alerts = alertDependencies(parts)
  const { ledger, clock } = shared
  const plainHttp = settings.plain_http_providers
  return [
    togetherRoutes({ fetch: answer, together: shared.recorder.together, ledger }),
    recordSearchRoutes({ fetch: answer }),
    ...tokenRoutes({ ...shared, fleet: workers.fleet, onRuntimeToken }),
    ...workloadIdentityRoutes({ ...shared, fleet: workers.fleet, plainHttp, fetch }),
    ...memberRoutes(memberDependencies({ shared, settings, workers, callers, oauth })),
    ...oauthRoutes(oauth),
    ...limitRoutes(shared),
    ...catalogRoutes({ ...shared, plainHttp }),
    mcpServerRoutes({ ...shared, plainHttp }),
    mcpOfferRoutes(shared),
    ...allConnectionRoutes(connectionDependencies({ shared, settings, oauth })),
    managedSettingsRoutes(shared),
    priceRoutes(shared),
    eventRoutes({ ...shared, exports: await exports() }),
    verifyRoutes({ ...shared, settings, seen: proof.seen }),
    ...sinkRoutes({ ...shared, plainHttp, fetch, seen: proof.seen }),
    rollupRebuildRoute({ ...shared, settings }),
    escalationRoutes({ ...shared, settings }),
    ...policyRoutes({ ...shared, policyTools: policyTools(settings) }),
    rateRoutes(shared),
    usageRoutes({ ...shared, freed: (accounts) => workers.usage.allocator.changed(accounts) }),
    excessRoutes(shared),
    findingsRoutes(shared),
    masterKeyRoutes({
      ...shared,
      settings,
      keyRotation,
      everyoneHolds: (fingerprint) => workers.othersHoldNextKey(fingerprint, 0),
    }),
    costRoutes(shared),
    budgetUsageRoute(shared),
    budgetValuesRoute(shared),
    tokenModelsRoute(shared),
    tokenLimitsRoute(shared),
    reconciliationRoute(shared),
    alertRoutes(alerts),
    firingRoutes(alerts),
    channelRoutes(alerts),
    channelTestRoute(alerts),
    ...workers.routes,
    consoleRoutes({
      baseUrl: () => addresses.base,
      gatewayUrl: () => addresses.gateway,
      consoleUrl: () => addresses.console,
      isSignedIn: async (request) =>
        (await sessionOf(request, { ledger, clock, settings, baseUrl: oauth.baseUrl })).session !== null,
      isSetUp: async () => (await ownerAwaitingSetup(ledger)) === null,
    }),
  ]
}

/** What policies may use of the environment when they are tried. */
const policyTools = ({ webhook_addresses }: Settings) => ({
  fetch,
  resolve: resolveHost,
  privateWebhooks: webhook_addresses === 'any',
})
