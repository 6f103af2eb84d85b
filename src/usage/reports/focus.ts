/**
 * Costs as rows of FOCUS 1.2 (the FinOps Open Cost and Usage Specification): one for each day, provider, model, team,
 * token, gateway, person and values of dimensions of attribution. The organization is the billing account and a team a
 * sub-account. What Gatehouse booked is billed, effective and contracted cost alike; so is the list cost, because
 * discounts of a provider are in its invoice only. Columns that begin with `x_` are ours, as the specification provides.
 * Tags have the dimensions of attribution by their names, and what Gatehouse says itself with a prefix (FOCUS 1.2, Tags).
 */
import { csvLine } from '../../events/export/csv.ts'
import { otherKey } from '../../events/rollups/rollup.ts'
import type { Visibility } from '../../events/visibility.ts'
import { timestamp } from '../../lib/clock.ts'
import { decimalOf } from '../../lib/money.ts'
import { query } from '../../store/query.ts'
import { organizations } from '../../store/schema/ledger/people.ts'
import { dayMs, type Month, monthAt } from './month-report.ts'
import { type NameReader, readRecordNames } from './names.ts'
import { type CostRow, readCosts, shownValue } from './read-costs.ts'

interface FocusContext {
  organization: { id: string; name: string }
  month: Month
  nameOf(kind: 'team' | 'token' | 'user', id: string): string
}

type Cell = string | number | null

const columns: Readonly<Record<string, (row: CostRow, context: FocusContext) => Cell>> = {
  BilledCost: ({ cost }) => decimalOf(cost),
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
  ChargePeriodEnd: ({ at }) => instant(at + dayMs),
  ChargePeriodStart: ({ at }) => instant(at),
  ConsumedQuantity: (row) => quantityOf(row).quantity,
  ConsumedUnit: (row) => quantityOf(row).unit,
  ContractedCost: ({ cost }) => decimalOf(cost),
  EffectiveCost: ({ cost }) => decimalOf(cost),
  InvoiceIssuerName: ({ provider }) => provider,
  ListCost: ({ cost }) => decimalOf(cost),
  PricingCategory: () => 'Standard',
  PricingQuantity: (row) => quantityOf(row).quantity,
  PricingUnit: (row) => quantityOf(row).unit,
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
  Tags: (row, { nameOf }) =>
    JSON.stringify({
      ...Object.fromEntries(Object.entries(row.dimensions).map(([name, value]) => [name, shownValue(value)])),
      ...(Object.values(row.dimensions).includes(otherKey) ? { 'gatehouse/rest': 'true' } : {}),
      ...(row.gateway_id === '' ? {} : { 'gatehouse/gateway_id': row.gateway_id }),
      ...(row.user_id === ''
        ? {}
        : { 'gatehouse/user_id': row.user_id, 'gatehouse/user': nameOf('user', row.user_id) }),
    }),
  x_InputTokens: ({ input_tokens }) => input_tokens,
  x_OutputTokens: ({ output_tokens }) => output_tokens,
  x_Requests: ({ requests }) => requests,
}

/** A call to an MCP server has a price and no tokens. */
function quantityOf({ input_tokens, output_tokens, requests }: CostRow): { quantity: number; unit: string } {
  const tokens = input_tokens + output_tokens
  return tokens > 0 ? { quantity: tokens, unit: 'Tokens' } : { quantity: requests, unit: 'Requests' }
}

/** Date and time as FOCUS writes them: UTC, to the second. */
const instant = (at: number): string => timestamp(at).replace(/\.\d{3}Z$/, 'Z')

const focusRow = (row: CostRow, context: FocusContext): string =>
  csvLine(Object.values(columns).map((cell) => cell(row, context)))

interface Asked {
  /** `2026-11` */
  month: string
  visibility: Visibility
}

/** The lines of a month, the header first, day by day; some charges at a time. */
export async function* focusLines(names: NameReader, { month: text, visibility }: Asked): AsyncGenerator<string> {
  const { ledger } = names
  const month = monthAt(text)
  const organization = await query(ledger)
    .select({ id: organizations.id, name: organizations.name })
    .from(organizations)
    .get()
  yield csvLine(Object.keys(columns))
  for (let at = month.from; at < month.until; at += dayMs) {
    for await (const rows of readCosts(ledger, { from: at, until: at + dayMs, visibility, withDimensions: true })) {
      const namesOf = (kind: 'team' | 'token' | 'user') => {
        const ids = rows.map((row) => row[`${kind}_id`])
        return readRecordNames(names, kind, ids)
      }
      const named = { team: await namesOf('team'), token: await namesOf('token'), user: await namesOf('user') }
      const context: FocusContext = {
        ...{ organization: organization ?? { id: '', name: '' }, month },
        nameOf: (kind, id) => named[kind](id),
      }
      yield rows.map((row) => focusRow(row, context)).join('')
    }
  }
}
