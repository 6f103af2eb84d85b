/**
 * Costs as rows of FOCUS 1.2 (the FinOps Open Cost and Usage Specification): one for each day, provider, model, team,
 * token and person. The organization is the billing account and a team a sub-account. What Gatehouse booked is billed,
 * effective and contracted cost alike; so is the list cost, because discounts of a provider are in its invoice only.
 * Columns that begin with `x_` are ours, as the specification provides.
 */
import { csvLine } from '../../events/export/csv.ts'
import { timestamp } from '../../lib/clock.ts'
import { fromNano } from '../../lib/money.ts'
import { dayMs, type Month } from './month-report.ts'
import type { CostRow } from './read-costs.ts'

interface FocusContext {
  organization: { id: string; name: string }
  month: Month
  /** When the day of the row began. */
  at: number
  nameOf(kind: 'team' | 'token' | 'user', id: string): string
}

type Cell = string | number | null

const columns: Readonly<Record<string, (row: CostRow, context: FocusContext) => Cell>> = {
  BilledCost: ({ cost }) => fromNano(cost),
  BillingAccountId: (_row, { organization }) => organization.id,
  BillingAccountName: (_row, { organization }) => organization.name,
  BillingAccountType: () => 'Organization',
  BillingCurrency: () => 'USD',
  BillingPeriodEnd: (_row, { month }) => instant(month.until),
  BillingPeriodStart: (_row, { month }) => instant(month.from),
  ChargeCategory: () => 'Usage',
  ChargeClass: () => null,
  ChargeDescription: ({ model, provider }) => `Requests to ${model} at ${provider}`,
  ChargeFrequency: () => 'Usage-Based',
  ChargePeriodEnd: (_row, { at }) => instant(at + dayMs),
  ChargePeriodStart: (_row, { at }) => instant(at),
  ConsumedQuantity: ({ input_tokens, output_tokens }) => input_tokens + output_tokens,
  ConsumedUnit: () => 'Tokens',
  ContractedCost: ({ cost }) => fromNano(cost),
  EffectiveCost: ({ cost }) => fromNano(cost),
  InvoiceIssuerName: ({ provider }) => provider,
  ListCost: ({ cost }) => fromNano(cost),
  PricingCategory: () => 'Standard',
  PricingQuantity: ({ input_tokens, output_tokens }) => input_tokens + output_tokens,
  PricingUnit: () => 'Tokens',
  ProviderName: ({ provider }) => provider,
  PublisherName: ({ provider }) => provider,
  ResourceId: ({ token_id }) => token_id || null,
  ResourceName: ({ token_id }, { nameOf }) => (token_id === '' ? null : nameOf('token', token_id)),
  ResourceType: ({ token_id }) => (token_id === '' ? null : 'API token'),
  ServiceCategory: () => 'AI and Machine Learning',
  ServiceName: ({ model }) => model,
  ServiceSubcategory: () => 'Generative AI',
  SkuId: ({ provider, model }) => `${provider}/${model}`,
  SubAccountId: ({ team_id }) => team_id || null,
  SubAccountName: ({ team_id }, { nameOf }) => (team_id === '' ? null : nameOf('team', team_id)),
  SubAccountType: ({ team_id }) => (team_id === '' ? null : 'Team'),
  Tags: ({ user_id, gateway_id }, { nameOf }) =>
    JSON.stringify({
      ...(gateway_id === '' ? {} : { gateway_id }),
      ...(user_id === '' ? {} : { user_id, user: nameOf('user', user_id) }),
    }),
  x_InputTokens: ({ input_tokens }) => input_tokens,
  x_OutputTokens: ({ output_tokens }) => output_tokens,
  x_Requests: ({ requests }) => requests,
}

/** Date and time as FOCUS writes them: UTC, to the second. */
const instant = (at: number): string => timestamp(at).replace(/\.\d{3}Z$/, 'Z')

export const focusHeader = (): string => csvLine(Object.keys(columns))

export const focusRow = (row: CostRow, context: FocusContext): string =>
  csvLine(Object.values(columns).map((cell) => cell(row, context)))
