/** How calls of an MCP server are governed: from a body to its row, and back. */
import { fromNano, toNano } from '../../lib/money.ts'
import type { mcpServers } from '../../store/schema/state/catalog.ts'
import { toolLimitsSchema } from '../call-limits.ts'
import type { ToolLimits, UpdateMcpServer } from './server-resource.ts'

/** The columns of how calls are governed. What the body leaves out stays as it is; null takes it away. */
export const governed = (body: Pick<UpdateMcpServer, Governance>) => ({
  ...(body.quarantined === undefined ? {} : { quarantined: body.quarantined ? 1 : 0 }),
  ...(body.tools === undefined ? {} : { tools: body.tools }),
  ...(body.price_per_call === undefined ? {} : { pricePerCall: nanoOf(body.price_per_call) }),
  ...(body.requests_per_minute === undefined ? {} : { requestsPerMinute: body.requests_per_minute }),
  ...(body.tool_limits === undefined ? {} : { toolLimits: storedToolLimits(body.tool_limits) }),
})

type Governance = 'quarantined' | 'tools' | 'price_per_call' | 'requests_per_minute' | 'tool_limits'

const nanoOf = (amount: number | null): number | null => (amount === null ? null : toNano(amount))
export const amountOf = (nano: number | null): number | null => (nano === null ? null : fromNano(nano))

/** JSON with prices in nano-dollars; null for no limits. */
const storedToolLimits = (limits: ToolLimits | null): string | null =>
  limits === null || Object.keys(limits).length === 0 ? null : JSON.stringify(withPrices(limits, nanoOf))

export const shownToolLimits = ({
  toolLimits,
}: Pick<typeof mcpServers.$inferSelect, 'toolLimits'>): ToolLimits | null =>
  toolLimits === null ? null : withPrices(toolLimitsSchema.parse(JSON.parse(toolLimits)), amountOf)

const withPrices = (limits: ToolLimits, priceOf: (price: number | null) => number | null): ToolLimits =>
  Object.fromEntries(
    Object.entries(limits).map(([tool, limit]) => [tool, { ...limit, price_per_call: priceOf(limit.price_per_call) }]),
  )
