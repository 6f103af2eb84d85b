/** The steps of the first hour, and which of them an installation has taken: each by the records that there are. */

export interface FirstHourRecords {
  providers: readonly { id: string; kind: string; allow_unlisted_models: boolean }[]
  /** Ids of providers whose last connection test failed. */
  failedTests: readonly string[]
  models: readonly { provider_id: string }[]
  tokens: readonly { roles: readonly string[] }[]
  /** The newest request that a gateway finished. */
  request: { event_id: string; timestamp: string } | null
  hasPolicy: boolean
  hasBudget: boolean
}

export const stepNames = ['provider', 'model', 'token', 'request', 'policy', 'budget'] as const
export type StepName = (typeof stepNames)[number]

/**
 * The simulator with its models is there from the start, and so is the administrator's token: none of them counts. A
 * provider counts unless its last connection test failed.
 */
export function stepsTaken(records: FirstHourRecords): ReadonlySet<StepName> {
  const providers = records.providers.filter(({ kind }) => kind !== 'simulator')
  const taken: Readonly<Record<StepName, boolean>> = {
    provider: providers.some(({ id }) => !records.failedTests.includes(id)),
    model: providers.some(
      ({ id, allow_unlisted_models }) =>
        allow_unlisted_models || records.models.some(({ provider_id }) => provider_id === id),
    ),
    token: records.tokens.some(({ roles }) => !roles.includes('owner')),
    request: records.request !== null,
    policy: records.hasPolicy,
    budget: records.hasBudget,
  }
  return new Set(stepNames.filter((name) => taken[name]))
}
